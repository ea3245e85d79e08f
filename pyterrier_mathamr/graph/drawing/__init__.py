"""Drawings of graphs: ``graph_parts`` takes a graph apart, ``graph_drawing`` paints it."""

from __future__ import annotations
