"""The contract as tests, for whoever writes a provider.

Install ``gitprovider[testing]``, build a rig for your host, and subclass the suite::

    # test_contract.py
    import pytest
    from gitprovider.testing import GitProviderContractTests, Rig

    from my_provider.testing import MyRig     # sets and reads the host's state without the provider


    class TestMyProvider(GitProviderContractTests):
        gaps = {"test_merge_a_conflict[rebase]": "a conflict is found only once the rebase has begun"}

        @pytest.fixture
        def rig(self, tmp_path) -> Rig:
            with MyRig(tmp_path) as rig:
                yield rig

:class:`Rig` is a Protocol: its docstrings say what each verb has to bring about. Anything that can set your host's
state will do: its command line, its database, a fake of it. The suite asserts the public contract alone
(``gitprovider.contract`` is the specification) and names no host. Which options your host has, ``rig.supports`` says;
of the others it is asserted that they are an UnsupportedOptionError before any request.

A case cannot be redefined (TypeError). What your provider does not hold to yet is a gap, declared by the case's name
with a reason: a strict expected failure, so that it cannot stay declared when it no longer is one. Every repository has
a path of its own, so that one rig may serve a whole class, and cases may run in parallel.
"""

from __future__ import annotations

from pkgutil import iter_modules

from gitprovider._core.extras import missing_extra

try:
    import pytest
except ImportError as exc:
    raise missing_extra("testing", exc) from None

# Before any import of the cases, so that a failing assert shows its values.
pytest.register_assert_rewrite(*(module.name for module in iter_modules(__path__, f"{__name__}.")))

from gitprovider.testing.rig import CommitView, File, PullRequestView, Rig  # noqa: E402  registered first
from gitprovider.testing.suite import GitProviderContractTests  # noqa: E402  registered first

__all__ = ["CommitView", "File", "GitProviderContractTests", "PullRequestView", "Rig"]
