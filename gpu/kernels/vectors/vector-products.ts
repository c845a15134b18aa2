import { type KernelDescriptor, range, reads, writes } from '../kernel.ts';
import { paddedRank } from '../normal-equations/slots.ts';
import { teamNeeds } from '../sgd/sgd-step.ts';
import { stateQuads, vectorSlotQuads } from './vectors.ts';

export type VectorProductsParams = {
  readonly rank: number;
  /** Precision of `fixed`: the float32 matrix or its float16 mirror. Sums are float32. */
  readonly precision: 'f32' | 'f16';
  readonly biases: boolean;
  /** The residual b - A x instead of A p. */
  readonly first: boolean;
  readonly threads: number;
  /** Threads that have a rating together: a power of two, at most a subgroup's. */
  readonly lanes: number;
};

/** Ratings that a team has asked for at a time, as many as a vector has numbers. */
const EACH = 4;

/** A p of parts of rows without A, or their residual, into slots of vectors (vectors.ts). `work` lists number of the state, first rating, ratings, slot. */
export const vectorProductsKernel: KernelDescriptor<VectorProductsParams> = {
  name: 'vector-products',
  bindings: [...reads('work', 'indices', 'values', 'fixed', 'state'), ...writes('slots')],
  uniforms: [{ name: 'count', type: 'u32' }],
  needs: ({ lanes }) => teamNeeds(Math.max(2, lanes)),
  values({ rank, precision, biases, first, threads, lanes }) {
    const half = precision === 'f16';
    const quads = paddedRank(rank) / 4;
    const perRow = quads / (half ? 2 : 1);
    const unpacked = (part: number) => (part === 0 ? { open: 'unpacked(', close: '.xy)' } : { open: 'unpacked(', close: '.zw)' });
    const parts = half ? [0, 1] : [0];
    return {
      STATE_QUADS: stateQuads(rank, biases),
      SLOT_QUADS: vectorSlotQuads(rank, biases),
      QUADS: quads,
      PIECES: perRow,
      THREADS: threads,
      LANES: lanes,
      TEAMS: threads / lanes,
      EACH,
      FIRST: first,
      sums_rows: first && biases,
      half,
      stored: half ? 'vec4u' : 'vec4f',
      each: range(EACH),
      distances: range(Math.log2(lanes)).map((bit) => 2 ** bit),
      pieces: range(Math.ceil(perRow / lanes)).map((at) => ({
        at,
        first: at * lanes,
        guarded: (at + 1) * lanes > perRow,
        vectors: parts.map((part) => ({ part, number: parts.length * at + part, ...(half ? unpacked(part) : { open: '', close: '' }) })),
      })),
    };
  },
  workgroup: ({ rank, threads, lanes }) => ({ threads, bytes: (threads / lanes) * (4 * paddedRank(rank) + 16) }),
};
