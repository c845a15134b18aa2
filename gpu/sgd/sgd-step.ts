import { STRIDE_STEP, strideOf } from '../device/resources.ts';
import type { GpuFeature } from '../webgpu/gpu-info.ts';
import { range } from '../webgpu/kernel.ts';

/**
 * Parameters of an SGD step: the update of a row's and a column's factors by one rating
 * (gpu/parts/sgd.wgsl).
 */
export type SgdStepParams = {
  /**
   * Features of a row of factors: the rank, with biases two more. Then a row has its bias and a constant 1,
   * and a column a constant 1 and its bias.
   */
  readonly features: number;
  /** Precision in which factors are stored. */
  readonly precision: 'f32' | 'f16';
  readonly threads: number;
  /**
   * Threads that process one rating together (a team): a power of two, at most the size of a subgroup. A
   * kernel with teams of 1 does not use subgroups.
   */
  readonly lanes: number;
  readonly biases: boolean;
  /** True: AdaGrad gives each row and column its own learning rate. */
  readonly adaptive: boolean;
};

/** Arrays that the steps change: factors of both sides, and AdaGrad's sums of squared gradients. */
export const steppedFactors = {
  row_factors: 'array<{{ stored }}>',
  column_factors: 'array<{{ stored }}>',
  row_sums: 'array<f32>',
  column_sums: 'array<f32>',
} as const;

/** Features in one piece of a row, which has 16 bytes. */
function featuresAPiece(precision: 'f32' | 'f16'): number {
  return precision === 'f16' ? 8 : 4;
}

/**
 * Layout of a row of float16 factors in workgroup memory that gives each thread of a team the same number of
 * 16-byte pieces (`pieces` in total). The remaining features follow as `tail` words of two features, at most
 * one for each thread.
 */
export interface EvenRow {
  readonly pieces: number;
  readonly tail: number;
}

/**
 * Returns the EvenRow layout for a row of float16 factors. Returns undefined if whole pieces divide evenly
 * among the threads without it, or if some thread would get more than one word of the rest. In a row without
 * this layout some threads have no last piece, and a step takes up to half as much time again.
 */
export function evenRow(features: number, lanes: number): EvenRow | undefined {
  const whole = Math.floor(features / 8);
  const pieces = whole - (whole % lanes);
  const tail = Math.ceil((features - 8 * pieces) / 2);
  return (strideOf(features) / 8) % lanes !== 0 && pieces > 0 && tail <= lanes ? { pieces, tail } : undefined;
}

/**
 * Template values for all kernels of SGD. `arithmetic`: precision in which a step is computed; f16, possible
 * if rows are stored as float16, computes two features at once. `even`: the layout of rows in workgroup
 * memory, if it is not the layout of the matrix.
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
    // With biases, one of the features of a row or column is the constant 1, which is not trained.
    TRAINED: features - (biases ? 1 : 0),
    // AdaGrad's sums of squared gradients are stored as a matrix with one column, whose rows are padded.
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
      // Number of the vector that contains the biases in teams of threads that swap the order of their pieces
      // (see takesTurns). null if no team swaps.
      swapped: turns ? form.words.length : null,
      distances: range(Math.log2(lanes)).map((bit) => 2 ** bit),
      pq: dots('p', 'q'),
      pp: dots('p', 'p'),
      qq: dots('q', 'q'),
    },
  };
}

/**
 * True if every second team of threads processes its pieces of a row in swapped pairs, so that neighbouring
 * teams use different banks of workgroup memory. `free`: false if the shader needs the bias in the first
 * lane's first piece, where a swap would not leave it.
 */
function takesTurns(perRow: number, lanes: number, free: boolean): boolean {
  return (lanes === 2 || lanes === 4) && perRow % (2 * lanes) === 0 && free;
}

/**
 * The 16-byte pieces of a row of factors that one thread processes. Each has the WGSL code that unpacks it to
 * vectors and packs the vectors again.
 */
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
 * The WGSL code for the word of two features that a thread has after its whole pieces (see EvenRow). If there
 * are fewer words than threads, the threads without one compute the last word as well and write the same
 * value, since a branch would cost more. `tail_mask` is 0 in these threads, so that dot products count each
 * word once.
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

/**
 * The WGSL code for one combination of storage and arithmetic: it converts 16 bytes of a row to vectors and
 * back, and multiplies such vectors.
 */
interface Form {
  readonly vector: string;
  readonly scalar: string;
  /** For each vector, the 32-bit words of the 16 bytes that it is unpacked from. */
  readonly words: readonly (readonly string[])[];
  unpack(source: string, words: readonly string[]): string;
  pack(vectors: readonly string[]): string;
  /** WGSL code of the dot product of two rows, in float32. `pieces`: numbers of the vectors of each piece. */
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
  // In float16, the eight products of a piece are summed as two sums of four products. The sums of all pieces
  // are added in float32.
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

export function teamNeeds(lanes: number): readonly GpuFeature[] {
  return lanes === 1 ? [] : lanes <= 4 ? ['quads'] : ['subgroups'];
}
