import type { DeviceMatrix } from '../device/resources.ts';
import { gramSumKernel, gramSumWorkgroups } from './gram-sum.ts';
import { wideGramKernel, wideGramWorkgroups } from './wide-gram.ts';
import {
  chooseNormalEquations,
  normalEquationsKernel,
  normalEquationsWorkgroups,
} from '../equations/normal-equations.ts';
import { MOST_FORMED, slotElements } from '../device/slots.ts';
import type { CompiledKernel } from '../webgpu/kernel.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import type { GpuInfo } from '../webgpu/gpu-info.ts';
import type { Pass } from '../webgpu/pass.ts';
import { EntryList } from '../update/work.ts';

/**
 * Θ is divided into ranges of rows, whose products θ_v θ_vᵀ are summed in parallel into slots of scratch
 * memory. PARTS: most ranges, enough to fill any GPU. PART_BYTES: most bytes of all slots. LEAST_ROWS: fewest
 * rows of a range.
 */
const PARTS = 1056;
const PART_BYTES = 128 << 20;
const LEAST_ROWS = 256;

/** The lists of ranges that were uploaded, cached for each GPU by the number of rows and a range's size. */
const lists = new WeakMap<
  Gpu,
  Map<string, { readonly work: GPUBuffer; readonly indices: GPUBuffer; readonly count: number }>
>();

/**
 * Adds to a pass the two kernels that compute the Gram matrix G = weight ΘᵀΘ in float32. The first sums θ_v
 * θ_vᵀ over ranges of rows of Θ into slots. To rank 512 it is the kernel of normal equations, as if each
 * range were a row that has rated these v. The second adds the slots.
 */
export async function addGramMatrix(
  gpu: Gpu,
  pass: Pass,
  { rows, values }: DeviceMatrix,
  gram: GPUBuffer,
  rank: number,
  weight: number,
): Promise<void> {
  const size = rowsOfPart(gpu.info, rows, rank);
  const { work, indices, count } = await partsOf(gpu, rows, size);
  const { workgroups, kernels } = gramKernels(gpu, rank);
  const [parts, sum] = await Promise.all(kernels);
  const slots = await gpu.scratch('slots', gramSlotBytes(gpu.info, rows, rank));
  // Normal equations have a b of ratings, which is not used here. So any buffer may be bound for ratings.
  pass.dispatch(
    parts,
    { work, indices, values, fixed: values, slots },
    { count, alpha: 0, base: 0 },
    workgroups(count),
  );
  pass.dispatch(sum, { slots, gram }, { slot_count: count, weight }, gramSumWorkgroups({ rank }));
}

/** Starts to compile both kernels. */
export function gramKernels(gpu: Gpu, rank: number) {
  const { parts, workgroups } = partsKernel(gpu, rank);
  return { workgroups, kernels: [parts, gpu.compile(gramSumKernel, { rank })] as const };
}

/** The kernel that sums ranges of rows into slots, and its workgroups for a number of ranges. */
function partsKernel(
  gpu: Gpu,
  rank: number,
): { readonly parts: Promise<CompiledKernel>; workgroups(count: number): number } {
  if (rank > MOST_FORMED)
    return {
      parts: gpu.compile(wideGramKernel, { rank }),
      workgroups: (count) => wideGramWorkgroups({ rank }, count),
    };
  const params = chooseNormalEquations(rank, 'f32', false);
  return {
    parts: gpu.compile(normalEquationsKernel, params),
    workgroups: (count) => normalEquationsWorkgroups(params, count),
  };
}

/** Rows of Θ in a range. */
function rowsOfPart({ limits }: GpuInfo, rows: number, rank: number): number {
  const slots = Math.floor(Math.min(PART_BYTES, limits.bindingBytes) / (4 * slotElements(rank, false)));
  return Math.max(LEAST_ROWS, Math.ceil(rows / Math.max(1, Math.min(PARTS, slots))));
}

/** Bytes of the slots of all ranges. */
export function gramSlotBytes(info: GpuInfo, rows: number, rank: number): number {
  return Math.ceil(rows / rowsOfPart(info, rows, rank)) * slotElements(rank, false) * 4;
}

async function partsOf(gpu: Gpu, rows: number, size: number) {
  const known =
    lists.get(gpu) ??
    new Map<string, { readonly work: GPUBuffer; readonly indices: GPUBuffer; readonly count: number }>();
  lists.set(gpu, known);
  const key = `${rows} ${size}`;
  const found = known.get(key);
  if (found !== undefined) return found;
  const list = new EntryList();
  for (let first = 0; first < rows; first += size)
    list.add(0, first, Math.min(size, rows - first), list.count);
  const { entries, count } = list.list;
  const made = {
    work: await gpu.bufferOf(entries, 'parts of a Gram matrix'),
    indices: await gpu.bufferOf(
      Uint32Array.from({ length: rows }, (_, row) => row),
      'rows of a Gram matrix',
    ),
    count,
  };
  known.set(key, made);
  return made;
}
