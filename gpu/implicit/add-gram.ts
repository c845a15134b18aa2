import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { slotElements, tilesOf } from '../device/slots.ts';

export type AddGramParams = { readonly rank: number };

const THREADS = 64;

/**
 * For implicit data: adds the Gram matrix G to A of each row that has ratings. A is in the row's first slot
 * of scratch memory (device/slots.ts). A workgroup has one entry (row, first slot, n, number of slots) of the
 * list. `gram`: G as F x F matrix (F: rank padded to whole 16 x 16 tiles).
 */
export const addGramKernel = kernelOf<AddGramParams>()({
  name: 'add-gram',
  bindings: [...reads({ work: 'array<vec4u>', gram: 'array<vec4f>' }), ...writes({ slots: 'array<vec4f>' })],
  uniforms: { count: 'u32' },
  values: ({ rank }) => ({ THREADS, TILES: tilesOf(rank), SLOT_QUADS: slotElements(rank, false) / 4 }),
  samples: [{ rank: 40 }],
});
