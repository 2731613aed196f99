"""Fake hosts: GitHub's and GitLab's REST dialects over a local forge, with a request log and a fault script.

They are mounted on ``responses`` for tests (``mount``) or served on a loopback port (``serve``).
"""
