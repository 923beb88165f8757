"""Layers of a drawn graph, beside what networkx says of the same graph."""

import random

import networkx as nx

from vani.render.plots.graph_layout import Edge, layers


def test_layers_are_the_generations_of_the_graph_without_the_edges_that_close_cycles():
    for seed in range(200):
        draw = random.Random(seed)
        keys = [f"app{number}" for number in range(draw.randint(1, 12))]
        edges = [Edge(draw.choice(keys), draw.choice(keys), 1.0, "") for _ in range(draw.randint(0, 30))]
        graph = nx.DiGraph()
        graph.add_nodes_from(keys)
        graph.add_edges_from((edge.source, edge.target) for edge in edges if edge.source != edge.target)
        place = {key: number for number, key in enumerate(keys)}
        for cycle in list(nx.strongly_connected_components(graph)):
            graph.remove_edges_from([(a, b) for a, b in graph.edges(cycle) if b in cycle and place[b] < place[a]])
        assert [set(layer) for layer in layers(keys, edges)] == [set(g) for g in nx.topological_generations(graph)]
