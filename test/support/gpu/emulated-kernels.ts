/**
 * Kernels of the GPU in JavaScript: each repeats the computations of its text on the bytes of its buffers,
 * with float32 where the text uses it.
 */
import { fromHalf } from '../../../engine/numbers/half.ts';
import { TILE, tilesOf } from '../../../gpu/device/slots.ts';
import { int8Pieces } from '../../../gpu/int8/int8-plan.ts';
import { OBJECTIVE_ROWS } from '../../../gpu/update/solved-pass.ts';
import {
  type Buffers,
  gathered,
  type Params,
  shiftsOf,
  startOf,
  sums,
  type Uniforms,
  withSlot,
  writeRow,
  writeSlot,
} from './emulated-rows.ts';
import { dot, dualSolution, type Equations, gradients, objectiveOf } from './emulated-systems.ts';

type Emulation = (params: Params, buffers: Buffers, uniforms: Uniforms) => void;

const { fround } = Math;

export const emulations: Readonly<Record<string, Emulation>> = {
  'normal-equations-tensor': (params, buffers, uniforms) => {
    const { rank, biases } = params;
    const slots = new Float32Array(buffers.slots.bytes);
    for (const [, first, ratings, slot] of entries(buffers, uniforms)) {
      writeSlot(slots, slot, rank, biases, sums(params, buffers, uniforms, first, ratings));
    }
  },
  'update-tensor': (params, buffers, uniforms) => {
    const { halfA } = params as Params & { readonly halfA: boolean };
    for (const [row, first, ratings] of entries(buffers, uniforms)) {
      const equations = sums(params, buffers, uniforms, first, ratings);
      solveRow(params, buffers, uniforms, { row, ratings, equations, halfA, half: true, tensor: true });
    }
  },
  'normal-equations-int8': (params, buffers, uniforms) =>
    emulations['normal-equations-tensor'](params, buffers, uniforms),
  'update-int8': (params, buffers, uniforms) => emulations['update-tensor'](params, buffers, uniforms),
  'solve-cg-registers': (params, buffers, uniforms) => {
    const { rank, halfA, half } = params as Params & { readonly halfA: boolean; readonly half: boolean };
    const slots = new Float32Array(buffers.slots.bytes);
    for (const [row, first, ratings, count] of entries(buffers, uniforms)) {
      let equations: Equations = {
        a: new Float32Array(rank * rank),
        b: new Float32Array(rank),
        s: new Float32Array(rank),
        t: 0,
      };
      for (let slot = first; slot < first + count; slot++)
        equations = withSlot(equations, slots, slot, rank, params.biases);
      solveRow(params, buffers, uniforms, { row, ratings, equations, halfA, half, tensor: false });
    }
  },
  'update-short': (params, buffers, uniforms) => {
    const { rank } = params;
    for (const [row, first, ratings] of entries(buffers, uniforms)) {
      const { theta, r } = gathered(
        params,
        buffers,
        { ...uniforms, scale: 1 },
        first,
        ratings,
        fround,
        params.centre === true,
      );
      const { shift, ownShift } = shiftsOf(params, buffers, row);
      const ratio = ownShift === undefined ? 0 : fround(shift / ownShift);
      const k = new Float32Array(ratings * ratings);
      for (let i = 0; i < ratings; i++)
        for (let j = 0; j < ratings; j++) k[i * ratings + j] = dot(theta[i], theta[j]);
      const y = dualSolution(
        k.map((value) => value + ratio),
        r,
        shift,
      );
      const bias = ratio * y.reduce((sum, value) => sum + value, 0);
      writeRow(
        params,
        buffers,
        row,
        Float32Array.from({ length: rank + 1 }, (_, f) =>
          f === rank ? bias : theta.reduce((sum, row, i) => fround(sum + fround(y[i] * row[f])), 0),
        ),
        true,
        shift * dot(r, y) - dot(r, r),
      );
    }
  },
  'row-shifts': (
    _params,
    buffers,
    { count, first, width, at, lambda, exponent, offset, damping, bias_lambda: ownLambda },
  ) => {
    const [pointers, shifts] = [new Int32Array(buffers.counts.bytes), new Float32Array(buffers.shifts.bytes)];
    for (let k = 0; k < count; k++) {
      const n = pointers[at + k + 1] - pointers[at + k];
      const place = (first + k) * width;
      shifts[place] = fround(lambda) * n ** exponent + offset;
      if (width === 2) shifts[place + 1] = fround(ownLambda) * n + damping;
    }
  },
  'objective-sums': (_params, { status, results }, { from_row: from, to_row: to }) => {
    const [told, sums] = [status, results].map(({ bytes }) => new Float32Array(bytes));
    for (let row = from; row < to; row++)
      sums[1 + Math.floor((row - from) / OBJECTIVE_ROWS)] += told[4 + row];
    new Uint32Array(results.bytes)[0] = new Uint32Array(status.bytes)[0];
  },
  'subtract-bias': (_params, buffers, { first, fours, mean }) => {
    const indices = new Uint32Array(buffers.indices.bytes);
    const [values, fixedBias, centred] = [buffers.values, buffers.fixed_bias, buffers.centred].map(
      ({ bytes }) => new Float32Array(bytes),
    );
    for (let k = 4 * first; k < Math.min(4 * (first + fours), indices.length); k++)
      centred[k] = fround(values[k] - fround(mean + fixedBias[indices[k]]));
  },
  'column-maxima': ({ rank }, { half, maxima }, { rows }) => {
    const [values, found] = [
      Float32Array.from(new Uint16Array(half.bytes), fromHalf),
      new Float32Array(maxima.bytes),
    ];
    const stride = tilesOf(rank) * TILE;
    for (let at = 0; at < rows * stride; at++)
      found[at % stride] = Math.max(found[at % stride], Math.abs(values[at]));
  },
  'to-int8': ({ rank }, { half, maxima, rounded, scales }, { rows }) => {
    const [values, found] = [
      Float32Array.from(new Uint16Array(half.bytes), fromHalf),
      new Float32Array(maxima.bytes),
    ];
    const [stride, pitch, target] = [
      tilesOf(rank) * TILE,
      16 * int8Pieces(rank),
      new Int8Array(rounded.bytes),
    ];
    for (let at = 0; at < rows * stride; at++)
      target[Math.floor(at / stride) * pitch + (at % stride)] = Math.round(
        (127 * values[at]) / Math.max(found[at % stride], 1e-30),
      );
    new Float32Array(scales.bytes).set(found.map((value) => value / 127).subarray(0, stride));
  },
};

function* entries({ work }: Buffers, { count }: Uniforms) {
  const list = new Uint32Array(work.bytes);
  for (let i = 0; i < count; i++) yield list.subarray(4 * i, 4 * i + 4);
}

/** Solves a row by steps of CG, and writes it. */
function solveRow(
  params: Params,
  buffers: Buffers,
  { steps }: Uniforms,
  row: {
    readonly row: number;
    readonly ratings: number;
    readonly equations: Equations;
    readonly halfA: boolean;
    readonly half: boolean;
    readonly tensor: boolean;
  },
): void {
  const { row: at, ratings, equations } = row;
  const [shifts, start] = [shiftsOf(params, buffers, at), startOf(params, buffers, at)];
  const x =
    ratings === 0
      ? new Float32Array(params.rank + 1)
      : gradients(equations, start, steps, shifts, ratings, row.halfA, row.tensor);
  writeRow(params, buffers, at, x, row.half, objectiveOf(equations, x, shifts, ratings));
}
