"""A stranger's package: a Git host in memory, and a provider for it that is proved with the contract suite."""
