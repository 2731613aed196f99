"""The contract as a test suite, for authors of providers.

Install ``gitprovider[testing]``, write a rig for your host, and subclass the suite::

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

:class:`Rig` is a Protocol. Its docstrings say what each method must do. A rig may use anything that can set your host's
state: its command line, its database or a fake server. The suite asserts only the public contract, which
``gitprovider.contract`` specifies, and depends on no host. ``rig.supports`` says which options your host has. For all
other options, the suite asserts an UnsupportedOptionError before any request.

A case cannot be redefined (TypeError). If your provider does not pass a case yet, declare a gap: the case's name and a
reason. A gap is a strict expected failure, so it must be removed once the case passes. Every repository has its own
path. One rig can therefore serve a whole class, and cases can run in parallel.
"""

from __future__ import annotations

from pkgutil import iter_modules

from gitprovider._core.extras import missing_extra

try:
    import pytest
except ImportError as exc:
    raise missing_extra("testing", exc) from None

# Before the cases are imported, so that a failed assert shows its values.
pytest.register_assert_rewrite(*(module.name for module in iter_modules(__path__, f"{__name__}.")))

from gitprovider.testing.rig import CommitView, File, PullRequestView, Rig  # noqa: E402  registered first
from gitprovider.testing.suite import GitProviderContractTests  # noqa: E402  registered first

__all__ = ["CommitView", "File", "GitProviderContractTests", "PullRequestView", "Rig"]
