"""Overspill: oversized tool outputs, stored whole and read by handle."""
