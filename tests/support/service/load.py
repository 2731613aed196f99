"""Many clients at once, and what may go wrong then: sent twice, lost, or answered to another caller."""

from __future__ import annotations

import asyncio
from collections import Counter

import httpx

from tests.support.service.running import Backend

CLIENTS = 50


async def one_client(client: httpx.AsyncClient, number: int, requests: int) -> list[str]:
    """Make a project of one's own, then open changes and look; what was wrong, in words."""
    wrong = []
    path = f"acme/shop-{number}"
    answer = await client.post("/projects", json={"path": path})
    if answer.status_code != 201:
        return [f"{path}: {answer.status_code} {answer.text}"]
    made = answer.json()
    heads = {"main": made["head"], "develop": made["head"]}
    if made["path"] != path:
        wrong.append(f"{path} was told of {made['path']}")
    for turn in range(1, requests):
        if turn % 10 == 1:
            branch = f"b{turn}"
            answer = await client.post(
                f"/projects/{path}/changes",
                json={
                    "branch": branch,
                    "path": f"{turn}.txt",
                    "content": f"{number} {turn}",
                    "title": f"{number}-{turn}",
                },
            )
            if answer.status_code != 201:
                wrong.append(f"{path} {branch}: {answer.status_code} {answer.text}")
                continue
            heads[branch] = answer.json()["head"]
        else:
            seen = (await client.get(f"/projects/{path}/branches")).json()
            if seen != heads:
                wrong.append(f"{path} saw {seen} instead of {heads}")
    return wrong


async def load(url: str, requests_each: int) -> list[str]:
    """All clients together."""
    limits = httpx.Limits(max_connections=CLIENTS)
    async with httpx.AsyncClient(base_url=url, timeout=300, limits=limits) as client:
        found = await asyncio.gather(*(one_client(client, number, requests_each) for number in range(CLIENTS)))
    return [wrong for each in found for wrong in each]


def sent_twice(behind: Backend) -> list[str]:
    """Mutations that the host saw more than once, word for word."""
    counted = Counter((entry.method, entry.path, entry.body) for entry in behind.request_log.mutations())
    return [f"{method} {path}" for (method, path, _), times in counted.items() if times > 1]
