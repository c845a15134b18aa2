import { STRIDE_STEP, strideOf } from '../../device/resources.ts';
import type { GpuFeature } from '../../webgpu/gpu-info.ts';
import { range } from '../kernel.ts';

/** Parameters of a step on one rating (gpu/kernels/parts/sgd-step.wgsl). */
export type SgdStepParams = {
  /** Features of a row: the rank, with biases two more. */
  readonly features: number;
  readonly precision: 'f32' | 'f16';
  readonly threads: number;
  /** Threads that step one rating together: a power of two, at most a subgroup's; 1 needs no subgroups. */
  readonly lanes: number;
  readonly biases: boolean;
  /** Learning rates by AdaGrad. */
  readonly adaptive: boolean;
};

/** Features of one 16-byte piece of a row. */
function featuresAPiece(precision: 'f32' | 'f16'): number {
  return precision === 'f16' ? 8 : 4;
}

/** Values for the texts of all kernels of SGD. */
export function stepValues({ features, precision, threads, lanes, biases, adaptive }: SgdStepParams) {
  const perRow = strideOf(features) / featuresAPiece(precision);
  const half = precision === 'f16';
  // With biases the first lane has the first piece.
  const turns = (lanes === 2 || lanes === 4) && perRow % (2 * lanes) === 0 && !biases;
  const pieces = range(Math.ceil(perRow / lanes)).map((at) => {
    const unpack = (source: string, part: number) => {
      const [a, b] = part === 0 ? ['x', 'y'] : ['z', 'w'];
      return half ? `vec4f(unpack2x16float(${source}_${at}.${a}), unpack2x16float(${source}_${at}.${b}))` : `${source}_${at}`;
    };
    const parts = range(half ? 2 : 1).map((part) => ({ vector: (half ? 2 : 1) * at + part, unpack_x: unpack('x', part), unpack_y: unpack('y', part) }));
    const pack = (source: string) => {
      const [low, high] = parts.map(({ vector }) => `${source}_${vector}`);
      return half ? `vec4<u32>(pack2x16float(${low}.xy), pack2x16float(${low}.zw), pack2x16float(${high}.xy), pack2x16float(${high}.zw))` : low;
    };
    const lane = turns ? ['lane_even', 'lane_odd'][at % 2] : 'lane';
    return { at, first: at * lanes, lane, guarded: (at + 1) * lanes > perRow, parts, pack_p: pack('p'), pack_n: pack('n') };
  });
  return {
    // With biases each side has a 1 that is not trained.
    TRAINED: features - (biases ? 1 : 0),
    // A sum of squared gradients is a matrix of one column.
    SUM_STRIDE: STRIDE_STEP,
    PIECES: perRow,
    THREADS: threads,
    LANES: lanes,
    TURNS: turns,
    BIASES: biases,
    ADAPTIVE: adaptive,
    stored: half ? 'vec4<u32>' : 'vec4f',
    pieces,
    vectors: range(pieces.length * (half ? 2 : 1)),
    distances: range(Math.log2(lanes)).map((bit) => 2 ** bit),
  };
}

/** Features of the adapter that a team of `lanes` threads needs. */
export function teamNeeds(lanes: number): readonly GpuFeature[] {
  return lanes === 1 ? [] : lanes <= 4 ? ['quads'] : ['subgroups'];
}
