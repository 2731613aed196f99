"""A fake GitLab: the REST API and the part of GraphQL that a commit needs, over a local forge."""
