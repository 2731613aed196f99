"""Tests of GitLabProvider."""
