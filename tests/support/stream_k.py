"""How CUTLASS's stream-K scheduler for Hopper divides a launch, in plain whole numbers.

Source: the published algorithm of PersistentTileSchedulerSm90StreamK and its parameters (CUTLASS
3.x and 4.x, BSD-3-Clause), written anew.
"""

from typing import NamedTuple

from reference import Unit

LEAST_STEPS = 8
"""k-tiles below which no unit goes if it can be helped."""
MOST_GROUPS = 8


class Grid(NamedTuple):
    """Output tiles in whole clusters, k-tiles of each, CTAs of a cluster and a wave."""

    tiles_m: int
    tiles_n: int
    k_tiles: int
    cluster_m: int
    cluster_n: int
    ctas: int

    @property
    def tiles(self) -> int:
        return self.tiles_m * self.tiles_n

    @property
    def cluster(self) -> int:
        return self.cluster_m * self.cluster_n


class Cut(NamedTuple):
    """`splits` of every tile; or, if `units` is not 0, the first `tiles` cut into so many units,
    in `groups`."""

    splits: int
    tiles: int
    units: int
    groups: int


def cut(grid: Grid, scheduler: str, split_k: int) -> Cut:
    """What the scheduler decides."""
    if scheduler == "splitk" or (scheduler == "heuristic" and split_k > 1):
        return Cut(min(split_k, grid.ctas, grid.k_tiles), 0, 0, 1)
    full_waves, tail = divmod(grid.tiles, grid.ctas)
    tiles = grid.tiles - max(full_waves - 1, 0) * grid.ctas
    if not tail or grid.k_tiles <= LEAST_STEPS:
        tiles = 0
    if scheduler == "heuristic" and 2 * tail >= grid.ctas:
        tiles = 0
    size = grid.cluster
    tiles = tiles // size * size
    units = min(grid.ctas // size * size, grid.k_tiles * tiles // LEAST_STEPS // size * size)
    if not units:
        return Cut(1, 0, 0, 1)
    if scheduler == "heuristic" and tiles < units and units % tiles == 0:
        return Cut(units // tiles, 0, 0, 1)
    return Cut(1, tiles, units, _groups(grid, tiles, units))


def _groups(grid: Grid, tiles: int, units: int) -> int:
    """The most groups into which clusters and tiles divide evenly, or else the clusters alone."""
    m, n = grid.tiles_m // grid.cluster_m, grid.tiles_n // grid.cluster_n
    most = min(m if grid.tiles_n > grid.tiles_m else n, MOST_GROUPS)
    size = grid.cluster

    def valid(groups: int) -> bool:
        if units // size % groups:
            return False
        return tiles // size // groups * size * grid.k_tiles // (units // groups) >= LEAST_STEPS

    found = [groups for groups in range(most, 1, -1) if valid(groups)]
    ideal = [groups for groups in found if tiles // size % groups == 0]
    return (ideal or found or [1])[0]


def unit(grid: Grid, cut: Cut, index: int) -> list[tuple[int, int, int]]:
    """The (tile, first k-tile, k-tiles) of stream-K unit `index`, in the order of its work."""
    size, depth = grid.cluster, grid.k_tiles
    in_group, group = divmod(index // size, cut.groups)
    tiles = cut.tiles // size // cut.groups + (group < cut.tiles // size % cut.groups)
    count = cut.units // size // cut.groups
    least, longer = divmod(tiles * depth, count)
    start = in_group * least + min(in_group, longer)
    end = start + least + (in_group < longer)
    pieces, start, end = [], _snapped(start, depth), _snapped(end, depth)
    while end > start:
        tile = (end - 1) // depth
        first = max(start, tile * depth)
        place = (tile * cut.groups + group) * size + index % size
        pieces.append((place, first - tile * depth, end - first))
        end = first
    return pieces


def _snapped(at: int, depth: int) -> int:
    """A unit's end, moved to that of a tile if one of the pieces would be too short."""
    inside = at % depth
    if inside < LEAST_STEPS:
        return at - inside
    return at + depth - inside if inside > depth - LEAST_STEPS else at


def launch(grid: Grid, cut: Cut) -> list[list[Unit]]:
    """Each CTA's units, whole tiles behind the cut ones."""
    ctas = [[] for _ in range(grid.ctas)]
    if cut.units:
        for index in range(cut.units):
            ctas[index % grid.ctas] += unit(grid, cut, index)
        rest = [(tile, 0, grid.k_tiles) for tile in range(cut.tiles, grid.tiles)]
        for place, piece in enumerate(rest, cut.units):
            ctas[place % grid.ctas].append(piece)
    else:
        least, longer = divmod(grid.k_tiles, cut.splits)
        for place in range(grid.tiles * cut.splits):
            share, tile = divmod(place, grid.tiles)
            first = share * least + min(share, longer)
            ctas[place % grid.ctas].append((tile, first, least + (share < longer)))
    starts: dict[int, list[int]] = {}
    for tile, first, _ in (piece for pieces in ctas for piece in pieces):
        starts.setdefault(tile, []).append(first)
    order = {tile: sorted(firsts) for tile, firsts in starts.items()}
    return [
        [
            Unit(tile, order[tile].index(first), len(order[tile]), length)
            for tile, first, length in pieces
        ]
        for pieces in ctas
        if pieces
    ]
