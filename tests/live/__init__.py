"""Against the real hosts: `make live`. Each test makes a private repository of its own and deletes it."""
