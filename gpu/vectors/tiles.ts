import { paddedRank } from '../device/slots.ts';

/**
 * Some ratings of a row whose rows of θ are in workgroup memory at the same time; see
 * parts/cg/tile-product.wgsl.
 */
export interface Tile {
  readonly rank: number;
  readonly precision: 'f32' | 'f16';
  /** Ratings of a row in the tile. */
  readonly ratings: number;
  /** Threads that share a row, and the rows of a workgroup. */
  readonly lanes: number;
  readonly rows: number;
}

/**
 * Distance between the rows of θ of two ratings in workgroup memory, in groups of four features; it is odd to
 * avoid bank conflicts.
 */
function pitchOf(rank: number): number {
  return paddedRank(rank) / 4 + 1;
}

export function tileBytes({ rank, precision, ratings, lanes, rows }: Tile): number {
  const perRating = pitchOf(rank) * (precision === 'f16' ? 8 : 16) + 4;
  return rows * (ratings * perRating + 4 * paddedRank(rank) + 8 * lanes);
}

/** Template values of shaders that multiply such tiles. */
export function tileValues({ rank, precision, ratings, lanes }: Tile) {
  const half = precision === 'f16';
  return {
    TILE: ratings,
    PITCH: pitchOf(rank),
    /** Threads that share one rating: a power of two. */
    SPLIT: 2 ** Math.max(0, Math.floor(Math.log2(lanes / ratings))),
    half,
    stored: half ? 'vec2u' : 'vec4f',
  };
}
