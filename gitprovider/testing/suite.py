"""The contract suite: one class with every case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest

from gitprovider.testing._commits import (
    CommitFilesCases,
    CommitFilesHeadCases,
    CommitFilesRefusedCases,
    FirstCommitCases,
)
from gitprovider.testing._creates import CreateBranchCases, CreateRepoCases
from gitprovider.testing._ensure import EnsureCases
from gitprovider.testing._failures import FailureCases
from gitprovider.testing._merges import (
    DeleteSourceBranchCases,
    MergeHeadCases,
    MergePullRequestCases,
    NotMergeableCases,
)
from gitprovider.testing._protection import ProtectBranchCases
from gitprovider.testing._pull_requests import OpenPullRequestCases
from gitprovider.testing._reads import EveryOperationCases, GetRepoCases, ListBranchesCases
from gitprovider.testing._state import HostStateCases


class GitProviderContractTests(
    EveryOperationCases,
    GetRepoCases,
    ListBranchesCases,
    CreateRepoCases,
    CreateBranchCases,
    ProtectBranchCases,
    CommitFilesCases,
    CommitFilesHeadCases,
    CommitFilesRefusedCases,
    FirstCommitCases,
    OpenPullRequestCases,
    MergePullRequestCases,
    MergeHeadCases,
    NotMergeableCases,
    DeleteSourceBranchCases,
    HostStateCases,
    EnsureCases,
    FailureCases,
):
    """Every case of the contract. Subclass it as ``Test…`` with a fixture ``rig``, as ``gitprovider.testing`` shows.

    Attributes:
        gaps: the cases that the provider does not pass yet: the name of a case, or of a case with one of its parameters
            (``test_merge_a_conflict[rebase]``), and the reason. Such a case must fail. If it passes, that is an error.
    """

    gaps: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Refuse a redefined case, and a gap without an existing case or without a reason."""
        super().__init_subclass__(**kwargs)
        for name in case_names():
            if getattr(cls, name) is not getattr(GitProviderContractTests, name):
                raise TypeError(
                    f"{cls.__name__}.{name} redefines a case of the contract; declare a gap, with its reason, instead"
                )
        for name, reason in cls.gaps.items():
            if name.partition("[")[0] not in case_names():
                raise TypeError(f"{cls.__name__}.gaps: {name!r} is not a case of the contract")
            if not isinstance(reason, str) or not reason.strip():
                raise TypeError(f"{cls.__name__}.gaps: {name!r} needs a reason")

    @pytest.fixture(autouse=True)
    def _expect_gap(self, request: pytest.FixtureRequest) -> None:
        """Make a declared gap a strict expected failure."""
        function: pytest.Function = request.node
        for name in (function.name, function.originalname):
            if name in self.gaps:
                request.applymarker(pytest.mark.xfail(strict=True, reason=self.gaps[name]))
                return


def case_names() -> tuple[str, ...]:
    """Return the names of all cases."""
    return tuple(name for name in dir(GitProviderContractTests) if name.startswith("test_"))
