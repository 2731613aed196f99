"""Fake servers: the REST APIs of GitHub and GitLab over a local forge, with a request log and injected faults.

``mount`` puts one behind ``responses`` for tests. ``serve`` serves one on a loopback port.
"""
