"""The contract as tests, for whoever writes a provider.

Install ``gitprovider[testing]``, build a rig for your host, and subclass the suite::

    # test_contract.py
    import pytest
    from gitprovider.testing import GitProviderContractTests, Rig

    from my_provider.testing import MyRig     # sets and reads the host's state without the provider


    class TestMyProvider(GitProviderContractTests):
        gaps = {"test_a_merge_commit_on_a_branch_of_linear_history": "the host has no such rule before version 3"}

        @pytest.fixture
        def rig(self, tmp_path) -> Rig:
            with MyRig(tmp_path) as rig:
                yield rig

:class:`Rig` is a Protocol: its docstrings say what each verb has to bring about. Anything that can set your host's
state will do: its command line, its database, a fake of it. The suite asserts the public contract alone
(``gitprovider.contract`` is the specification) and names no host; what your host cannot do, ``rig.supports`` says, and
then UnsupportedOptionError is what is asserted. A case cannot be redefined (TypeError). What your provider does not
hold to yet is a gap, declared by name with a reason; it is a strict expected failure, so that it cannot stay declared
when it no longer is one. Every repository has a path of its own, so that a rig may serve a whole session and cases may
run in parallel.
"""

from __future__ import annotations

from pkgutil import iter_modules

from gitprovider._extras import missing_extra

try:
    import pytest
except ImportError as exc:
    raise missing_extra("testing", exc) from None

# Before any import of the cases, so that a failing assert shows its values.
pytest.register_assert_rewrite(*(module.name for module in iter_modules(__path__, f"{__name__}.")))

from gitprovider.testing.rig import CommitView, File, PullRequestView, Rig  # noqa: E402  registered first
from gitprovider.testing.suite import GitProviderContractTests  # noqa: E402  registered first

__all__ = ["CommitView", "File", "GitProviderContractTests", "PullRequestView", "Rig"]
