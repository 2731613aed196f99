"""How long a test waits for a host on loopback."""

# Seconds. The host is a thread of this process or of another one, on a machine that may have more work than cores. Only
# a test of the timeout itself gives a shorter one.
PATIENCE = 120
