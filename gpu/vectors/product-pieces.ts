import { paddedRank } from '../device/slots.ts';
import { range } from '../webgpu/kernel.ts';

/** Groups of 16 bytes in a row of θ. */
export function piecesOf({
  rank,
  precision,
}: {
  readonly rank: number;
  readonly precision: 'f32' | 'f16';
}): number {
  return paddedRank(rank) / (precision === 'f16' ? 8 : 4);
}

/**
 * Template values of kernels in which `lanes` threads share a rating and a thread has every `lanes`-th piece
 * of 16 bytes of a row of θ.
 */
export function productPieces({
  rank,
  precision,
  lanes,
}: {
  readonly rank: number;
  readonly precision: 'f32' | 'f16';
  readonly lanes: number;
}) {
  const half = precision === 'f16';
  const perRow = piecesOf({ rank, precision });
  const unpacked = (part: number) =>
    part === 0 ? { open: 'unpacked(', close: '.xy)' } : { open: 'unpacked(', close: '.zw)' };
  const parts = half ? [0, 1] : [0];
  return {
    QUADS: paddedRank(rank) / 4,
    PIECES: perRow,
    half,
    stored: half ? 'vec4u' : 'vec4f',
    pieces: range(Math.ceil(perRow / lanes)).map((at) => ({
      at,
      first: at * lanes,
      guarded: (at + 1) * lanes > perRow,
      vectors: parts.map((part) => ({
        part,
        number: parts.length * at + part,
        ...(half ? unpacked(part) : { open: '', close: '' }),
      })),
    })),
  };
}
