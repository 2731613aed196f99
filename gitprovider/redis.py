"""A rate limit that several processes and machines share, in Redis (extra ``redis``)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import redis

from gitprovider import checks
from gitprovider._remote.throttle import SAME_WINDOW, Answered, Sending, checked_settings

__all__ = ["RedisBudget"]

# Longer than any wait that a host asks for: GitLab's longest Retry-After is a day.
_KEPT = 2 * 86_400
_ALONE = 1.0  # seconds between two requests of a process that cannot reach Redis

# KEYS: the window, the pace of mutations. ARGV of "admit": reserve, seconds between two mutations (0 for a read).
# ARGV of "learn": limit, remaining, resets_in, blocked_for; an empty string for what the host did not say.
# "admit" counts the request and returns "0", or returns the seconds after which to ask again.
_SCRIPT = """
local time = redis.call("TIME")
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local stored = redis.call("HMGET", KEYS[1], "limit", "left", "ends", "blocked")
local limit, left, ends, blocked = tonumber(stored[1]), tonumber(stored[2]), tonumber(stored[3]), tonumber(stored[4])
local function keep(key, name, value)
  redis.call("HSET", key, name, string.format("%.6f", value))
  redis.call("EXPIRE", key, {kept})
end
if ARGV[1] == "admit" then
  if ends and now >= ends then
    redis.call("HDEL", KEYS[1], "left", "ends")
    left, ends = limit, nil
    if left then keep(KEYS[1], "left", left) end
  end
  if blocked and now < blocked then return tostring(blocked - now) end
  if left and ends and left <= tonumber(ARGV[2]) then return tostring(ends - now) end
  local pause = tonumber(ARGV[3])
  if pause > 0 then
    local due = tonumber(redis.call("HGET", KEYS[2], "due"))
    if due and now < due then return tostring(due - now) end
    keep(KEYS[2], "due", now + pause)
  end
  if left then keep(KEYS[1], "left", left - 1) end
  return "0"
end
local told, remaining, resets_in, asked = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
if asked then keep(KEYS[1], "blocked", math.max(blocked or 0, now + asked)) end
if told then keep(KEYS[1], "limit", told) end
if not remaining or not resets_in then return "0" end
local new = now + resets_in
if ends and new < ends - {same_window} then return "0" end
if left and not (ends and new > ends + {same_window}) then remaining = math.min(left, remaining) end
keep(KEYS[1], "left", remaining)
keep(KEYS[1], "ends", math.max(new, ends or new))
return "0"
""".replace("{kept}", str(_KEPT)).replace("{same_window}", str(SAME_WINDOW))


class RedisBudget:
    """The limits of one credential, shared by all processes that use the same Redis.

    The rules are those of ``gitprovider.HostBudget``. Time is Redis' own, so the clocks of the machines do not matter.
    If Redis cannot be reached, each process sends at most one request per second, and logs one warning. No error of
    Redis is raised.

    Args:
        client: a ``redis.Redis``. Give it a ``socket_timeout``: it is asked before and told after each request.
        owner: a name for the owner of the credential. A host counts all tokens of one user together, so use the same
            name wherever one of them is used. It is a part of the keys in Redis: never use the token itself.
        reserve: how many requests of each window are left to others.
        mutations_per_minute: the most requests per minute that change something; None for no limit.
        prefix: the beginning of the keys in Redis.
        clock: returns monotonic seconds, for the pace without Redis.

    Raises:
        InvalidRequestError: an argument is wrong.
    """

    def __init__(
        self,
        client: redis.Redis,
        *,
        owner: str,
        reserve: int = 10,
        mutations_per_minute: float | None = None,
        prefix: str = "gitprovider",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reserve, self._pause = checked_settings(reserve, mutations_per_minute)
        owner = checks.check_text("owner", owner, empty=False, limit=255)
        # In a cluster the braces put both keys on one server, which a script needs.
        self._prefix = f"{checks.check_text('prefix', prefix, empty=False, limit=255)}:{{{owner}}}"
        self._script: Any = client.register_script(_SCRIPT)
        self._clock = clock
        self._lock = threading.Lock()
        self._away = False
        self._next = 0.0

    def before(self, request: Sending) -> None:
        """Wait until the request fits into the limits, and count it.

        Raises:
            RateLimitedError: the wait would be longer than the operation allows. Nothing is sent.
            RetryCancelledError: the wait was cancelled. Nothing is sent.
        """
        pause = self._pause if request.mutation else 0.0
        while (delay := self._run(request.host, request.resource, "admit", self._reserve, pause)) > 0:
            request.wait(delay)

    def after(self, response: Answered) -> None:
        """Learn from a response. Within one window the lowest number counts; a window's end never moves back."""
        told = (response.limit, response.remaining, response.resets_in, response.blocked_for)
        if any(value is not None for value in told):
            self._run(response.host, response.resource, "learn", *("" if value is None else value for value in told))

    def _run(self, host: str, resource: str, *arguments: Any) -> float:
        keys = [f"{self._prefix}:{host}:{resource}", f"{self._prefix}:{host}:mutations"]
        try:
            delay = float(self._script(keys=keys, args=arguments))
        except redis.RedisError as exc:
            return self._alone(exc) if arguments[0] == "admit" else 0.0
        self._away = False
        return delay

    def _alone(self, error: redis.RedisError) -> float:
        """Return 0 once a second, and otherwise the seconds until then."""
        with self._lock:
            if not self._away:
                self._away = True
                logging.getLogger("gitprovider").warning(
                    "Redis cannot be used (%s): one request per second until it can", type(error).__name__
                )
            now = self._clock()
            if now < self._next:
                return self._next - now
            self._next = now + _ALONE
            return 0.0
