/** Inputs and parameters of every task, and its outcome on a device. */
import type { JsonObject } from '../../../engine/json.ts';
import { keyArrays, UNKNOWN_KEY } from '../../../engine/keys/key-column.ts';
import { type MatrixShape, type Partition, type PartitionRef } from '../../../engine/partition.ts';
import type { Device } from '../../../engine/run/device.ts';
import { ratingBlock } from '../../cpu/scope.ts';
import { paddingOf } from '../../support/devices/padding.ts';
import {
  COLUMNS,
  RANK,
  ROWS,
  bands,
  block,
  codes,
  equations,
  gram,
  hashes,
  ids,
  listed,
  map,
  pairs,
  shifts,
  theta,
  transposed,
  whole,
  x,
} from './pure-inputs.ts';
import { searchCases } from './search-cases.ts';

export interface Case {
  readonly params: JsonObject;
  readonly inputs: Readonly<Record<string, Partition>>;
  /** Matrices by their rows or shapes, which are allocated; other outputs the task makes. */
  readonly outputs?: Readonly<Record<string, number | MatrixShape | undefined>>;
}

export const cases: Readonly<Record<string, Case>> = {
  update: {
    params: { ...whole, rank: RANK, lambda: 0.05, cgBelow: 4, cgSteps: 3, mean: 0 },
    inputs: { block, fixed: theta, previous: x },
    outputs: { factors: ROWS },
  },
  'squared-error': {
    params: { ...whole, rank: RANK },
    inputs: { block, rowFactors: x, columnFactors: theta },
  },
  'weighted-norm': { params: { ...whole, rank: RANK }, inputs: { block, factors: x } },
  gram: {
    params: { from: 0, to: RANK, rank: RANK, weight: 0.5 },
    inputs: { factors: x },
    outputs: { gram: 16 },
  },
  'update-implicit': {
    params: { ...whole, rank: RANK, alpha: 3, base: 1, cgBelow: 4, cgSteps: 3 },
    inputs: { block, fixed: theta, previous: x, gram, shifts },
    outputs: { factors: ROWS },
  },
  'solve-equations': {
    params: { ...whole, rank: RANK, lambda: 0.05, cgBelow: 4, cgSteps: 3 },
    inputs: { equations, previous: x },
    outputs: { factors: ROWS },
  },
  'implicit-error': {
    params: { ...whole, rank: RANK, alpha: 3, base: 1 },
    inputs: { block, rowFactors: x, columnFactors: theta },
  },
  predict: {
    params: { rank: RANK },
    inputs: { pairs, rowFactors: x, columnFactors: theta },
    outputs: { predictions: undefined },
  },
  'top-n': {
    params: { ...whole, rank: RANK, n: 5 },
    inputs: { rowFactors: x, columnFactors: theta, exclude: block },
    outputs: { top: undefined },
  },
  ...searchCases,
  'rank-listed': {
    params: { ...whole, rank: RANK },
    inputs: { rowFactors: x, columnFactors: theta, listed, exclude: block },
    outputs: { places: undefined },
  },
  initialize: {
    params: { ...whole, rank: RANK, seed: 3 },
    inputs: { keys: hashes },
    outputs: { factors: ROWS },
  },
  'number-keys': {
    params: { rows: 30 },
    inputs: {
      ids: {
        layout: 'key-pairs',
        rows: 30,
        columns: { ...keyArrays(ids, 'user'), ...keyArrays(ids, 'item') },
      },
    },
    outputs: { codes: undefined, users: undefined, items: undefined },
  },
  'recode-ids': {
    params: { users: { least: 3, wide: false }, items: { least: -2, wide: true } },
    inputs: { codes },
    outputs: { recoded: undefined, users: undefined, items: undefined },
  },
  'rank-ids': {
    params: { least: -4, wide: true },
    inputs: { counts: { layout: 'id-counts', rows: 5, columns: { counts: Int32Array.of(0, 2, 0, 1, 9) } } },
    outputs: { map: undefined, keys: undefined },
  },
  'keep-known': {
    params: {},
    inputs: {
      codes,
      values: {
        layout: 'values',
        rows: 30,
        columns: { values: Float32Array.from({ length: 30 }, (_, i) => i) },
      },
      userMap: map([3, UNKNOWN_KEY, 1, 0, 2, 4, UNKNOWN_KEY, 7, 8, 9, 5]),
      itemMap: map([0, 1, 2, 3, UNKNOWN_KEY, 5, 6, 7, 8, 9, 10]),
    },
    outputs: { known: undefined, ratings: undefined },
  },
  'compose-maps': {
    params: {},
    inputs: { first: map([2, 0, 1, 1]), second: map([7, 9, 3]) },
    outputs: { map: undefined },
  },
  'count-pairs': {
    params: { groups: [1], bands: 2, rowBits: 4, by: 'users' },
    inputs: { bands, 'codes.0': codes },
    outputs: { counts: undefined },
  },
  'split-pairs': {
    params: { by: 'users', chunks: 1 },
    inputs: {
      parts: bands,
      'codes.0': codes,
      'values.0': { layout: 'values', rows: 30, columns: { values: Float32Array.from(ids.values) } },
    },
    outputs: {
      'partCodes.0': undefined,
      'partCodes.1': undefined,
      'partValues.0': undefined,
      'partValues.1': undefined,
    },
  },
  'split-block': {
    params: { ...whole, firstRow: 5 },
    inputs: { parts: bands, block },
    outputs: {
      'partCodes.0': undefined,
      'partCodes.1': undefined,
      'partValues.0': undefined,
      'partValues.1': undefined,
    },
  },
  'count-columns': {
    params: { starts: [0, 5, ROWS], bands: 2, rowBits: 4 },
    inputs: { bands, block },
    outputs: { counts: undefined },
  },
  'find-duplicates': {
    params: whole,
    inputs: { block },
    outputs: { lengths: undefined, repeated: undefined },
  },
  'damped-means': {
    params: { ...whole, mean: 3, damping: 10 },
    inputs: {
      block,
      columnMeans: {
        layout: 'means',
        rows: COLUMNS,
        columns: { values: new Float32Array(COLUMNS).fill(0.25) },
      },
    },
    outputs: { rowMeans: { layout: 'means', rows: ROWS, columns: 1, stride: 1 } },
  },
  'sum-columns': {
    params: { ...whole, columns: COLUMNS, mean: 3 },
    inputs: {
      block,
      rowMeans: { layout: 'means', rows: ROWS, columns: { values: new Float32Array(ROWS).fill(0.25) } },
    },
    outputs: { sums: undefined },
  },
  'sum-values': { params: { from: 2, to: 9, apart: 3 }, inputs: { block }, outputs: {} },
  'count-values': { params: whole, inputs: { block }, outputs: {} },
  'similar-items': {
    params: { from: 3, to: COLUMNS, count: 4, shrink: 2 },
    inputs: { byUser: block, byItem: transposed },
    outputs: { similar: undefined },
  },
  'count-pairs-of-items': {
    params: { from: 0, to: COLUMNS, lambda: 3 },
    inputs: { byUser: block, byItem: transposed },
    outputs: { matrix: { rows: COLUMNS, columns: COLUMNS, stride: 24 } },
  },
  'begin-sweep': {
    params: { first: 0, count: 5 },
    inputs: { matrix: gram },
    outputs: {
      panels: { rows: 2, columns: 40, stride: 40 },
      inverse: { rows: 5, columns: 5, stride: 8 },
    },
  },
  'rank-by-items': {
    params: { ...whole, items: COLUMNS, ks: [2, 5] },
    inputs: {
      history: block,
      listed,
      weights: ratingBlock(
        Array.from({ length: COLUMNS }, () => 5),
        COLUMNS,
        7,
      ),
    },
    outputs: { ranked: undefined },
  },
  'copy-rows': { params: whole, inputs: { source: x }, outputs: { target: ROWS } },
  'batch-order': {
    params: { seed: 1, stream: 2, epoch: 3, batches: 9 },
    inputs: {},
    outputs: { order: undefined },
  },
  'wave-order': {
    params: { seed: 1, epoch: 3, workers: 2, columnBands: 4 },
    inputs: {},
    outputs: { order: undefined },
  },
};

export const bytesOf = ({ columns }: Partition) =>
  Object.fromEntries(
    Object.entries(columns).map(([name, { buffer, byteOffset, byteLength }]) => [
      name,
      Buffer.from(new Uint8Array(buffer, byteOffset, byteLength)).toString('hex'),
    ]),
  );

/** The values of a task, the bits of its outputs, and what is in their padding beside 0. */
export async function outcome(
  device: Device,
  kernel: string,
  { params, inputs, outputs = {} }: Case,
  run: number,
  more: JsonObject,
) {
  const ref = (name: string): PartitionRef => ({ name: `${kernel}-${name}`, partition: 0, version: run });
  for (const [name, partition] of Object.entries(inputs)) device.put(ref(name), partition);
  for (const [name, rows] of Object.entries(outputs)) {
    if (rows !== undefined)
      device.allocate(
        ref(name),
        typeof rows === 'object'
          ? rows
          : {
              rows,
              columns: RANK,
              stride: Math.ceil(RANK / device.info.strideStep) * device.info.strideStep,
            },
      );
  }
  const refs = (names: object) => Object.fromEntries(Object.keys(names).map((name) => [name, ref(name)]));
  const { values } = await device.run({
    kernel,
    params: { ...params, ...more },
    inputs: refs(inputs),
    outputs: refs(outputs),
  });
  const made = await Promise.all(
    Object.keys(outputs).map(async (name) => bytesOf(await device.fetch(ref(name)))),
  );
  const padding: number[] = [];
  for (const [name, rows] of Object.entries(outputs)) {
    const shape = typeof rows === 'object' ? rows : { columns: RANK };
    if (rows !== undefined && !('layout' in shape))
      padding.push(...(await paddingOf(device, ref(name), shape.columns)));
  }
  const left = await Promise.all(
    Object.keys(inputs).map(async (name) => bytesOf(await device.fetch(ref(name)))),
  );
  for (const name of [...Object.keys(inputs), ...Object.keys(outputs)]) device.release(ref(name));
  return { values, made, left, padding };
}
