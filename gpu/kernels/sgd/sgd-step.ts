import { STRIDE_STEP, strideOf } from '../../device/resources.ts';
import type { GpuFeature } from '../../webgpu/gpu-info.ts';
import { range } from '../kernel.ts';

/** Parameters of a step on one rating (gpu/kernels/parts/sgd-step.wgsl). */
export type SgdStepParams = {
  /** Features of a row: the rank, with biases two more. */
  readonly features: number;
  /** The storage of factors. */
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

/** Values for the texts of all kernels of SGD. Arithmetic in float16, for rows that are stored so, computes two features at once. */
export function stepValues({ features, precision, threads, lanes, biases, adaptive }: SgdStepParams, arithmetic: 'f32' | 'f16' = 'f32') {
  const perRow = strideOf(features) / featuresAPiece(precision);
  const stored = precision === 'f16' ? 'vec4<u32>' : 'vec4f';
  // With biases the first lane has the first piece.
  const turns = (lanes === 2 || lanes === 4) && perRow % (2 * lanes) === 0 && !biases;
  const form = forms[precision === 'f32' ? 'f32' : arithmetic === 'f32' ? 'widened' : 'f16'];
  const pieces = range(Math.ceil(perRow / lanes)).map((at) => {
    const parts = form.words.map((words, part) => ({ vector: form.words.length * at + part, unpack_x: form.unpack(`x_${at}`, words), unpack_y: form.unpack(`y_${at}`, words) }));
    const pack = (source: string) => form.pack(parts.map(({ vector }) => `${source}_${vector}`));
    const lane = turns ? ['lane_even', 'lane_odd'][at % 2] : 'lane';
    return { at, first: at * lanes, lane, guarded: (at + 1) * lanes > perRow, parts, pack_p: pack('p'), pack_n: pack('n') };
  });
  const vectors = pieces.map(({ parts }) => parts.map(({ vector }) => vector));
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
    HALVES: form === forms.f16,
    stored,
    pieces,
    step: { vectors: vectors.flat(), vector: form.vector, scalar: form.scalar, distances: range(Math.log2(lanes)).map((bit) => 2 ** bit), pq: form.dots(vectors, 'p', 'q'), pp: form.dots(vectors, 'p', 'p'), qq: form.dots(vectors, 'q', 'q') },
  };
}

/** A row's 16 bytes as vectors, and their products. */
interface Form {
  readonly vector: string;
  readonly scalar: string;
  /** The words of 32 bits of each vector. */
  readonly words: readonly (readonly string[])[];
  unpack(source: string, words: readonly string[]): string;
  pack(vectors: readonly string[]): string;
  /** The product of two rows, in float32, whose vectors are given by piece. */
  dots(pieces: readonly (readonly number[])[], left: string, right: string): string;
}

const WORDS = ['x', 'y', 'z', 'w'] as const;

const dots: Form['dots'] = (pieces, left, right) => pieces.flat().map((v) => `dot(${left}_${v}, ${right}_${v})`).join(' + ');

const forms: Readonly<Record<'f32' | 'widened' | 'f16', Form>> = {
  f32: { vector: 'vec4f', scalar: 'f32', words: [WORDS], unpack: (source) => source, pack: ([whole]) => whole, dots },
  widened: {
    vector: 'vec4f',
    scalar: 'f32',
    words: [WORDS.slice(0, 2), WORDS.slice(2)],
    unpack: (source, words) => `vec4f(${words.map((word) => `unpack2x16float(${source}.${word})`).join(', ')})`,
    pack: (vectors) => `vec4<u32>(${vectors.flatMap((one) => [`pack2x16float(${one}.xy)`, `pack2x16float(${one}.zw)`]).join(', ')})`,
    dots,
  },
  // The products of a piece are summed in float16, four for each half of a pair, and pieces in float32.
  f16: {
    vector: 'vec2<f16>',
    scalar: 'f16',
    words: WORDS.map((word) => [word]),
    unpack: (source, [word]) => `bitcast<vec2<f16>>(${source}.${word})`,
    pack: (vectors) => `vec4<u32>(${vectors.map((one) => `bitcast<u32>(${one})`).join(', ')})`,
    dots: (pieces, left, right) => `dot(vec2f(1.0), ${pieces.map((vectors) => `vec2f(${vectors.slice(1).reduce((sum, v) => `fma(${left}_${v}, ${right}_${v}, ${sum})`, `${left}_${vectors[0]} * ${right}_${vectors[0]}`)})`).join(' + ')})`,
  },
};

/** Features of the adapter that a team of `lanes` threads needs. */
export function teamNeeds(lanes: number): readonly GpuFeature[] {
  return lanes === 1 ? [] : lanes <= 4 ? ['quads'] : ['subgroups'];
}
