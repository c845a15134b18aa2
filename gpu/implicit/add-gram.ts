import { kernelOf, reads, writes } from '../webgpu/kernel.ts';
import { slotElements, tilesOf } from '../device/slots.ts';

export type AddGramParams = { readonly rank: number };

const THREADS = 64;

/**
 * For each entry of the list (row, first slot, n, number of slots): A += G in the first slot, unless n is 0.
 * One workgroup per entry. `gram`: F x F.
 */
export const addGramKernel = kernelOf<AddGramParams>()({
  name: 'add-gram',
  bindings: [...reads({ work: 'array<vec4u>', gram: 'array<vec4f>' }), ...writes({ slots: 'array<vec4f>' })],
  uniforms: { count: 'u32' },
  needs: () => [],
  values: ({ rank }) => ({ THREADS, TILES: tilesOf(rank), SLOT_QUADS: slotElements(rank, false) / 4 }),
  workgroup: () => ({ threads: THREADS, bytes: 0 }),
  samples: [{ rank: 40 }],
});
