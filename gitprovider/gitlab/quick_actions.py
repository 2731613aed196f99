"""Lines of a description that GitLab would execute instead of keeping: its quick actions.

https://docs.gitlab.com/user/project/quick_actions/ . Found are those for merge requests and for every issuable, at the
start of a line and outside fenced code, in any case, as GitLab's own extractor finds them.
"""

from __future__ import annotations

import re

_NAMES = (
    "add_child add_contacts add_email add_parent approve assign assign_reviewer award blocked_by blocks board_move "
    "cc child_epic clear_health_status clear_weight clone close confidential convert_to_ticket copy_metadata "
    "create_merge_request done draft due duplicate epic estimate estimate_time health_status invite_email iteration "
    "label labels link lock merge milestone move page parent_epic placeholder promote promote_to promote_to_incident "
    "publish q react ready reassign reassign_reviewer rebase relabel relate remove_child remove_child_epic "
    "remove_contacts remove_due_date remove_email remove_estimate remove_iteration remove_label remove_milestone "
    "remove_parent remove_parent_epic remove_reviewer remove_time_spent remove_time_estimate remove_zoom reopen "
    "request_changes request_review reviewer set_parent severity ship shrug spend spend_time spent status "
    "submit_review subscribe summarize_diff tableflip target_branch timeline title todo type unapprove "
    "unassign unassign_reviewer unlabel unlink unlock unrelate unsubscribe vulnerability weight wip zoom"
)
_ACTION = re.compile(rf"/(?:{'|'.join(_NAMES.split())})(?:[ \t].*)?", re.IGNORECASE)


def first_quick_action(text: str) -> str | None:
    """The first line of ``text`` that GitLab would execute, or None."""
    fenced = False
    for line in re.split(r"\r\n|\n|\r", text):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and _ACTION.fullmatch(line.strip()):
            return line.strip()
    # An open fence hides nothing: GitLab looks for whole blocks.
    return first_quick_action(_after_last_fence(text)) if fenced else None


def _after_last_fence(text: str) -> str:
    return re.split(r"(?m)^```.*$", text)[-1]
