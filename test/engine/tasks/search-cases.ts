import { type Partition, type SharedColumn, sharedArray } from '../../../engine/partition.ts';
import { indexShapes } from '../../../operators/serving/search.ts';
import type { Case } from './pure-cases.ts';
import { COLUMNS, RANK, theta, zeros } from './pure-inputs.ts';

const part = (values: SharedColumn): Partition => ({
  layout: 'list-part',
  rows: values.length,
  columns: { values },
});
const numbers = (values: readonly number[]): Partition => {
  const column = sharedArray(Uint32Array, values.length);
  column.set(values);
  return part(column);
};
/** A vector of float32 numbers in host memory. */
const vector = (rows: number) => ({ layout: 'list-part', rows, columns: 1, stride: 1 });

const vectors: Partition = { layout: 'vectors', rows: COLUMNS, columns: theta.columns };
const shape = { width: RANK, rank: RANK, normalized: false };
/** Two lists: the first eight vectors, and the others. */
const PLACES = 8 + 4 * Math.ceil((COLUMNS - 8) / 4);
const listed = {
  vectors,
  members: numbers(Array.from({ length: COLUMNS }, (_, item) => item)),
  offsets: numbers([0, 8, COLUMNS]),
};
const starts = numbers([0, 8, PLACES]);
/** Blocks of the signs of 16 columns, a bit for each of 16 numbers. */
const BLOCKS = Math.ceil(PLACES / 16);
const searched = {
  centerRows: zeros(8, RANK),
  radii: zeros(1, 4),
  coarse: zeros(PLACES, 4),
  columnGuide: zeros(4, PLACES),
  signs: zeros(BLOCKS, 8),
  starts,
  vectors,
};
const search = { ...shape, n: 5, probes: 1, longest: 3, margin: 1.5, wholeLists: 2 };
const query = Array.from({ length: RANK }, (_, k) => k - 4);

/** The tasks of searches for single rows, and of lists. */
export const searchCases: Readonly<Record<string, Case>> = {
  'prepare-search': {
    params: { width: RANK, rank: RANK, normalized: false },
    inputs: { vectors: { layout: 'vectors', rows: COLUMNS, columns: theta.columns } },
    outputs: indexShapes(COLUMNS, RANK),
  },
  search: {
    params: { searches: [{ query: Array.from({ length: RANK }, (_, k) => k - 4), n: 5, left: [3] }] },
    inputs: { exact: theta, coarse: zeros(COLUMNS, 4), guide: zeros(5, COLUMNS), center: zeros(3, RANK) },
  },
  'search-for-row': {
    params: {
      rated: [0, 1],
      values: [3, -1],
      solving: { kernel: 'update', params: { rank: RANK, lambda: 0.5, cgBelow: 0, cgSteps: 1 } },
      shift: 0,
      n: 5,
      left: [0, 1],
    },
    inputs: { exact: theta, coarse: zeros(COLUMNS, 4), guide: zeros(5, COLUMNS), center: zeros(3, RANK) },
    outputs: { rows: 4 },
  },
  'assign-lists': {
    params: { ...shape, from: 0, to: COLUMNS },
    inputs: {
      vectors,
      centers: zeros(2, RANK + 1),
      weights: part(sharedArray(Float32Array, RANK).fill(1)),
    },
    outputs: { lists: vector(COLUMNS) },
  },
  'average-lists': {
    params: { ...shape, from: 0, to: 2 },
    inputs: listed,
    outputs: { means: vector(2 * RANK) },
  },
  'encode-lists': {
    params: { ...shape, from: 0, to: 2 },
    inputs: { ...listed, starts, means: part(sharedArray(Float32Array, 2 * RANK)) },
    outputs: { codes: vector(4 * PLACES), guide: vector(4 * PLACES) },
  },
  'load-lists': {
    params: {},
    inputs: {
      centers: part(sharedArray(Float32Array, 5 * RANK)),
      starts,
      codes: part(sharedArray(Uint8Array, 16 * PLACES)),
      guide: part(sharedArray(Uint32Array, 4 * PLACES)),
    },
    outputs: {
      centerRows: 8,
      radii: { rows: 1, columns: 4, stride: 4 },
      coarse: { rows: PLACES, columns: 4, stride: 4 },
      columnGuide: { rows: 4, columns: PLACES, stride: PLACES },
      signs: { rows: BLOCKS, columns: 8, stride: 8 },
    },
  },
  'rank-lists': { params: { ...search, query }, inputs: searched },
  'list-candidates': { params: { ...search, query, left: [3] }, inputs: searched },
  'search-lists': { params: { ...search, searches: [{ query, left: [3] }] }, inputs: searched },
  'top-n-in-lists': {
    params: { ...search, from: 0, to: COLUMNS },
    inputs: { ...searched, queries: vectors },
    outputs: { top: undefined },
  },
};
