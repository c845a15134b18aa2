import { STRIDE_STEP, strideOf } from '../device/resources.ts';
import type { GpuFeature } from '../webgpu/gpu-info.ts';
import { range } from '../webgpu/kernel.ts';

/** Parameters of a step on one rating (gpu/parts/sgd-step.wgsl). */
export type SgdStepParams = {
  /** Features of a row: the rank, with biases two more. */
  readonly features: number;
  /** The storage of factors. */
  readonly precision: 'f32' | 'f16';
  readonly threads: number;
  /**
   * Threads that step one rating together: a power of two, at most the size of a subgroup. A kernel with 1
   * does not use subgroups.
   */
  readonly lanes: number;
  readonly biases: boolean;
  /** Learning rates by AdaGrad. */
  readonly adaptive: boolean;
};

/** Features of one 16-byte piece of a row. */
function featuresAPiece(precision: 'f32' | 'f16'): number {
  return precision === 'f16' ? 8 : 4;
}

/**
 * Layout of a float16 row in a tile: pieces of 16 bytes, the same number for each thread of a team, followed
 * by words of two features, at most one for each thread.
 */
export interface EvenRow {
  readonly pieces: number;
  readonly tail: number;
}

/**
 * The layout for a row. Undefined if the row's pieces divide evenly among the threads without it, or if more
 * than one word would remain for some thread. Without the layout, the last piece is partial in some threads,
 * and a step takes up to half as much time again.
 */
export function evenRow(features: number, lanes: number): EvenRow | undefined {
  const whole = Math.floor(features / 8);
  const pieces = whole - (whole % lanes);
  const tail = Math.ceil((features - 8 * pieces) / 2);
  return (strideOf(features) / 8) % lanes !== 0 && pieces > 0 && tail <= lanes ? { pieces, tail } : undefined;
}

/**
 * Template values for all kernels of SGD. With rows stored as float16, float16 arithmetic computes two
 * features at once. `even`: the layout of rows in a tile.
 */
export function stepValues(
  { features, precision, threads, lanes, biases, adaptive }: SgdStepParams,
  arithmetic: 'f32' | 'f16' = 'f32',
  even?: EvenRow,
) {
  const stride = strideOf(features) / featuresAPiece(precision);
  const { pieces: perRow, tail: words } = even ?? { pieces: stride, tail: 0 };
  const stored = precision === 'f16' ? 'vec4<u32>' : 'vec4f';
  const turns = takesTurns(perRow, lanes, !biases || (even !== undefined && !adaptive));
  const form = forms[precision === 'f32' ? 'f32' : arithmetic === 'f32' ? 'widened' : 'f16'];
  const pieces = piecesOf(form, perRow, lanes, turns);
  const tail = even !== undefined && words > 0 ? tailOf(even, lanes, arithmetic) : null;
  const groups = pieces.map(({ parts }) => parts.map(({ vector }) => vector));
  const dots = (left: string, right: string) =>
    [form.dots(groups, left, right), ...(tail ? [tail.dot(left, right)] : [])].join(' + ');
  const vectors = [
    ...pieces.flatMap(({ parts }) => parts.map(({ vector }) => ({ name: `${vector}`, type: form.vector }))),
    ...(tail ? [{ name: 't', type: tail.type }] : []),
  ];
  return {
    // With biases each side has a constant 1.
    TRAINED: features - (biases ? 1 : 0),
    // A sum of squared gradients is a matrix of one column.
    SUM_STRIDE: STRIDE_STEP,
    PIECES: stride,
    WIDTH: perRow,
    TAIL: words,
    tail,
    THREADS: threads,
    LANES: lanes,
    TURNS: turns,
    BIASES: biases,
    ADAPTIVE: adaptive,
    HALVES: form === forms.f16,
    stored,
    pieces,
    step: {
      vectors,
      scalar: form.scalar,
      // With swapped pieces: the vector that holds the biases.
      swapped: turns ? form.words.length : null,
      distances: range(Math.log2(lanes)).map((bit) => 2 ** bit),
      pq: dots('p', 'q'),
      pp: dots('p', 'p'),
      qq: dots('q', 'q'),
    },
  };
}

/**
 * True if every other team swaps the order of a thread's pieces. With biases, the first lane has the first
 * piece; in a team that swaps it is that lane's second piece, and AdaGrad reads the bias there.
 */
function takesTurns(perRow: number, lanes: number, free: boolean): boolean {
  return (lanes === 2 || lanes === 4) && perRow % (2 * lanes) === 0 && free;
}

/** The pieces of a thread, with the WGSL that unpacks each piece to vectors and packs the vectors again. */
function piecesOf(form: Form, perRow: number, lanes: number, turns: boolean) {
  return range(Math.ceil(perRow / lanes)).map((at) => {
    const parts = form.words.map((words, part) => ({
      vector: form.words.length * at + part,
      unpack_x: form.unpack(`x_${at}`, words),
      unpack_y: form.unpack(`y_${at}`, words),
    }));
    const pack = (source: string) => form.pack(parts.map(({ vector }) => `${source}_${vector}`));
    return {
      at,
      first: at * lanes,
      lane: turns ? ['lane_even', 'lane_odd'][at % 2] : 'lane',
      guarded: (at + 1) * lanes > perRow,
      parts,
      pack_p: pack('p'),
      pack_n: pack('n'),
    };
  });
}

/**
 * The WGSL for a thread's word after its pieces. A thread without a word of its own steps the last word too
 * and writes the same value: a branch would cost more. `tail_mask` keeps such copies out of products.
 */
function tailOf({ tail }: EvenRow, lanes: number, arithmetic: 'f32' | 'f16') {
  const half = arithmetic === 'f16';
  const [unpack, pack] = half ? ['bitcast<vec2<f16>>', 'bitcast<u32>'] : ['unpack2x16float', 'pack2x16float'];
  return {
    type: half ? 'vec2<f16>' : 'vec2f',
    word: tail === 1 ? '0u' : tail < lanes ? `min(lane, ${tail - 1}u)` : 'lane',
    unpack_x: `${unpack}(x_t)`,
    unpack_y: `${unpack}(y_t)`,
    pack_p: `${pack}(p_t)`,
    pack_n: `${pack}(n_t)`,
    dot: (left: string, right: string) =>
      half
        ? `dot(vec2f(1.0), vec2f(${left}_t * (tail_mask * ${right}_t)))`
        : `dot(${left}_t, tail_mask * ${right}_t)`,
  };
}

/** Conversion of 16 bytes of a row to vectors, and the products of these vectors. */
interface Form {
  readonly vector: string;
  readonly scalar: string;
  /** The words of 32 bits of each vector. */
  readonly words: readonly (readonly string[])[];
  unpack(source: string, words: readonly string[]): string;
  pack(vectors: readonly string[]): string;
  /** WGSL of the product of two rows, in float32. `pieces`: the vectors of each piece. */
  dots(pieces: readonly (readonly number[])[], left: string, right: string): string;
}

const WORDS = ['x', 'y', 'z', 'w'] as const;

const dots: Form['dots'] = (pieces, left, right) =>
  pieces
    .flat()
    .map((v) => `dot(${left}_${v}, ${right}_${v})`)
    .join(' + ');

const forms: Readonly<Record<'f32' | 'widened' | 'f16', Form>> = {
  f32: {
    vector: 'vec4f',
    scalar: 'f32',
    words: [WORDS],
    unpack: (source) => source,
    pack: ([whole]) => whole,
    dots,
  },
  widened: {
    vector: 'vec4f',
    scalar: 'f32',
    words: [WORDS.slice(0, 2), WORDS.slice(2)],
    unpack: (source, words) =>
      `vec4f(${words.map((word) => `unpack2x16float(${source}.${word})`).join(', ')})`,
    pack: (vectors) =>
      `vec4<u32>(${vectors.flatMap((one) => [`pack2x16float(${one}.xy)`, `pack2x16float(${one}.zw)`]).join(', ')})`,
    dots,
  },
  // Products within a piece are summed in float16, four for each half of a pair; the pieces' sums are added
  // in float32.
  f16: {
    vector: 'vec2<f16>',
    scalar: 'f16',
    words: WORDS.map((word) => [word]),
    unpack: (source, [word]) => `bitcast<vec2<f16>>(${source}.${word})`,
    pack: (vectors) => `vec4<u32>(${vectors.map((one) => `bitcast<u32>(${one})`).join(', ')})`,
    dots: (pieces, left, right) =>
      `dot(vec2f(1.0), ${pieces.map((vectors) => `vec2f(${vectors.slice(1).reduce((sum, v) => `fma(${left}_${v}, ${right}_${v}, ${sum})`, `${left}_${vectors[0]} * ${right}_${vectors[0]}`)})`).join(' + ')})`,
  },
};

/** Features of the adapter that a team of `lanes` threads needs. */
export function teamNeeds(lanes: number): readonly GpuFeature[] {
  return lanes === 1 ? [] : lanes <= 4 ? ['quads'] : ['subgroups'];
}
