/**
 * Texts of kernels for tensor cores and subgroups of 32 threads, changed so that every adapter runs them: a
 * thread holds a row, or half a row, of each matrix, and what subgroups exchange passes through workgroup
 * memory. Float16 numbers are float32 ones that were rounded to it.
 */
import { compileKernel, renderKernel } from '../../../gpu/webgpu/compile-kernel.ts';
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import type { CompiledKernel, KernelDescriptor, KernelParams } from '../../../gpu/webgpu/kernel.ts';

/** Makes a GPU without tensor cores compile such kernels, of texts that may be changed. */
export function withSoftTensors(gpu: Gpu, change = (text: string) => text): Gpu {
  const render: typeof renderKernel = (kernel, params) => softTensors(change(renderKernel(kernel, params)));
  const compile = (kernel: KernelDescriptor, params: KernelParams): Promise<CompiledKernel> =>
    compileKernel(gpu, { kernel, params, label: `${kernel.name} ${JSON.stringify(params)}`, render });
  return Object.assign(gpu, { compile });
}

/** The text to change. */
interface Source {
  readonly text: string;
  /** True where matrices hold whole numbers. */
  readonly whole: boolean;
  /** Functions that the changed text needs, by name. */
  readonly functions: Map<string, string>;
}

/** The changed text. */
export function softTensors(text: string): string {
  const whole = text.includes('subgroup_matrix_result<i32');
  const source: Source = { text, whole, functions: new Map() };
  const changes = [withoutFeatures, withArrays, withLoads, withStores, withMultiplications];
  const changed = calls(changes.reduce((changing, change) => change(changing, source), joined(text)));
  return [changed, ...source.functions.values(), common(text)].join('\n');
}

/** The text without comments, whose calls and signatures have one line each. */
function joined(text: string): string {
  return text
    .replace(/\/\/[^\n]*/g, '')
    .replace(/([(,])\n\s*/g, (_, before: string) => (before === ',' ? ', ' : before))
    .replace(/\n\s*\)/g, ')');
}

/** Directives, the number of the subgroup and float16 numbers. */
function withoutFeatures(changing: string): string {
  return changing
    .replace(/^(enable (f16|subgroups|chromium\w*)|diagnostic\(off, (chromium\.)?subgroup\w*\));$/gm, '')
    .replace(
      /, @builtin\(subgroup_id\) subgroup: u32\) \{/,
      ') {\n  let subgroup = thread / 32u;\n  let soft_lane = thread & 31u;',
    )
    .replace('half: array<f16>', 'half: array<atomic<u32>>')
    .replace(/half\[(.*)\] = f16\((\w+)\);/g, 'soft_put_half($1, $2);')
    .replace(/array<f16, /g, 'array<f32, ')
    .replace(/\bf16\(/g, 'soft_rounded(');
}

/** Matrices of zeros become arrays. */
function withArrays(changing: string): string {
  return changing
    .replace(
      /subgroup_matrix_result<(f32|i32), (8|16), 16>\([0.]+\)/g,
      (_, type: string, columns: string) => `array<${type}, ${Number(columns) / 2}>()`,
    )
    .replace(/subgroup_matrix_left<f16, 16, 16>\(\)/g, 'array<f32, 16>()');
}

function withLoads(changing: string, { text, functions }: Source): string {
  return changing.replace(
    /subgroupMatrixLoad<subgroup_matrix_(left|right)<(f16|i8), (\d+), (\d+)>, (row|col)_major>\(&(\w+), /g,
    (_, side: string, type: string, columns: string, rows: string, layout: string, from: string) => {
      const name = `soft_${side}_${type}_${columns}_${layout}_${from}`;
      const matrix = { side, type, columns: Number(columns), rows: Number(rows), layout, from };
      functions.set(name, load(name, { ...matrix, words: !text.includes(`${from}: array<f16`) }));
      return `${name}(soft_lane, `;
    },
  );
}

function withStores(changing: string, { text, whole, functions }: Source): string {
  return changing.replace(
    /subgroupMatrixStore<(row|col)_major>\(&(\w+), (.*), (\w+), (\w+)\);/g,
    (_, layout: string, to: string, offset: string, matrix: string, stride: string) => {
      const columns = columnsOf(matrix);
      const name = `soft_store_${columns}_${layout}_${to}`;
      const type = whole && columns === 16 ? 'i32' : 'f32';
      const element = new RegExp(`${to}: array<vec4<(u32|f32)>`).exec(text)?.[1];
      functions.set(name, store(name, { columns, type, layout, to, element }));
      return `${name}(soft_lane, ${offset}, ${matrix}, ${stride});`;
    },
  );
}

function withMultiplications(changing: string, { whole, functions }: Source): string {
  return changing.replace(
    /subgroupMatrixMultiplyAccumulate\((\w+), (\w+), (\w+)\)/g,
    (_, left: string, right: string, sum: string) => {
      const columns = columnsOf(sum);
      const name = `soft_multiply_${columns}`;
      functions.set(name, multiply(name, columns, whole && columns === 16));
      return `${name}(${left}, ${right}, ${sum})`;
    },
  );
}

/** Columns of a matrix of results, by its name in the kernels. */
function columnsOf(matrix: string): number {
  return matrix.startsWith('y_') ? 8 : 16;
}

/** Sums and exchanges of subgroups become calls of functions with the thread's number before the value. */
function calls(text: string): string {
  let changed = '';
  for (let at = 0; at < text.length;) {
    const found = /subgroup(Add|ShuffleXor|ShuffleDown|Shuffle)\(/.exec(text.slice(at));
    if (found === null) return changed + text.slice(at);
    const begin = at + found.index + found[0].length;
    let end = begin;
    for (let depth = 1; depth > 0; end++) depth += text[end] === '(' ? 1 : text[end] === ')' ? -1 : 0;
    const inside = calls(text.slice(begin, end - 1));
    const wide = found[1] === 'Add' && /^(vec3f|mine$)/.test(inside);
    changed += `${text.slice(at, at + found.index)}soft_${found[1]}${wide ? '3' : ''}(thread, ${inside})`;
    at = end;
  }
  return changed;
}

interface Matrix {
  readonly columns: number;
  readonly type: string;
  readonly layout: string;
}

/**
 * Rows of a left operand lie in two threads each, whole; of a right operand every thread has half the
 * columns.
 */
function load(
  name: string,
  {
    side,
    type,
    columns,
    rows,
    layout,
    from,
    words,
  }: Matrix & {
    readonly side: string;
    readonly rows: number;
    readonly from: string;
    readonly words: boolean;
  },
): string {
  const held = side === 'left' ? columns : (columns / 2) * rows;
  const element = type === 'i8' ? 'i32' : 'f32';
  const scale = !words ? 1 : type === 'i8' ? 16 : 8;
  const number = !words
    ? `${from}[at]`
    : type === 'i8'
      ? `extractBits(bitcast<i32>(${from}[at / 16u][(at / 4u) & 3u]), 8u * (at & 3u), 8u)`
      : `unpack2x16float(${from}[at / 8u][(at / 2u) & 3u])[at & 1u]`;
  const place =
    side === 'left'
      ? 'let row = lane / 2u; let column = i;'
      : `let row = i / ${columns / 2}u; let column = (lane & 1u) * ${columns / 2}u + i % ${columns / 2}u;`;
  const at =
    layout === 'row'
      ? `(offset + row * stride) * ${scale}u + column`
      : `(offset + column * stride) * ${scale}u + row`;
  return `fn ${name}(lane: u32, offset: u32, stride: u32) -> array<${element}, ${held}> {
  var matrix = array<${element}, ${held}>();
  for (var i = 0u; i < ${held}u; i++) { ${place} let at = ${at}; matrix[i] = ${number}; }
  return matrix;
}`;
}

function store(
  name: string,
  { columns, type, layout, to, element }: Matrix & { readonly to: string; readonly element?: string },
): string {
  const half = columns / 2;
  const scale = element === undefined ? 1 : 4;
  const value = element === 'u32' ? 'bitcast<u32>(matrix[i])' : 'matrix[i]';
  const target = element === undefined ? `${to}[at]` : `${to}[at / 4u][at & 3u]`;
  const at =
    layout === 'row'
      ? `(offset + row * stride) * ${scale}u + column`
      : `(offset + column * stride) * ${scale}u + row`;
  return `fn ${name}(lane: u32, offset: u32, matrix_in: array<${type}, ${half}>, stride: u32) {
  var matrix = matrix_in;
  for (var i = 0u; i < ${half}u; i++) { let row = lane / 2u; let column = (lane & 1u) * ${half}u + i; let at = ${at}; ${target} = ${value}; }
}`;
}

function multiply(name: string, columns: number, whole: boolean): string {
  const [type, depth, half] = [whole ? 'i32' : 'f32', whole ? 32 : 16, columns / 2];
  return `fn ${name}(left_in: array<${type}, ${depth}>, right_in: array<${type}, ${depth * half}>, sum_in: array<${type}, ${half}>) -> array<${type}, ${half}> {
  var left = left_in; var right = right_in; var sum = sum_in;
  for (var k = 0u; k < ${depth}u; k++) { for (var i = 0u; i < ${half}u; i++) { sum[i] += left[k] * right[k * ${half}u + i]; } }
  return sum;
}`;
}

function common(text: string): string {
  return `
var<workgroup> soft_values: array<vec3f, THREADS>;
fn soft_Add3(thread: u32, value: vec3f) -> vec3f {
  workgroupBarrier();
  soft_values[thread] = value;
  workgroupBarrier();
  var sum = vec3f();
  for (var i = 0u; i < 32u; i++) { sum += soft_values[(thread & ~31u) + i]; }
  return sum;
}
fn soft_Add(thread: u32, value: f32) -> f32 {
  return soft_Add3(thread, vec3f(value, 0.0, 0.0)).x;
}
fn soft_ShuffleXor(thread: u32, value: f32, other: u32) -> f32 {
  workgroupBarrier();
  soft_values[thread] = vec3f(value);
  workgroupBarrier();
  return soft_values[thread ^ other].x;
}
fn soft_Shuffle(thread: u32, value: f32, lane: u32) -> f32 {
  return soft_ShuffleXor(thread, value, (thread & 31u) ^ lane);
}
fn soft_ShuffleDown(thread: u32, value: f32, by: u32) -> f32 {
  return soft_ShuffleXor(thread, value, (thread & 31u) ^ ((thread + by) & 31u));
}
fn soft_rounded(value: f32) -> f32 {
  return unpack2x16float(pack2x16float(vec2f(value, 0.0))).x;
}
${
  text.includes('half: array<f16>')
    ? `fn soft_put_half(at: u32, value: f32) {
  let shift = 16u * (at & 1u);
  atomicAnd(&half[at / 2u], ~(0xffffu << shift));
  atomicOr(&half[at / 2u], (pack2x16float(vec2f(value, 0.0)) & 0xffffu) << shift);
}`
    : ''
}`;
}
