import type { DeviceMatrix } from '../device/resources.ts';
import { gramSumKernel, gramSumWorkgroups } from './gram-sum.ts';
import {
  chooseNormalEquations,
  normalEquationsKernel,
  normalEquationsWorkgroups,
} from '../equations/normal-equations.ts';
import { slotElements } from '../device/slots.ts';
import type { Gpu } from '../webgpu/gpu.ts';
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

/** The lists of ranges that were uploaded, cached for each GPU by the number of rows and the most ranges. */
const lists = new WeakMap<
  Gpu,
  Map<string, { readonly work: GPUBuffer; readonly indices: GPUBuffer; readonly count: number }>
>();

/**
 * Adds to a pass the two kernels that compute the Gram matrix G = weight ΘᵀΘ in float32. The first is the
 * kernel of normal equations: it sums θ_v θ_vᵀ over ranges of rows of Θ into slots, as if each range were a
 * row that has rated these v. The second adds the slots.
 */
export async function addGramMatrix(
  gpu: Gpu,
  pass: Pass,
  { rows, values }: DeviceMatrix,
  gram: GPUBuffer,
  rank: number,
  weight: number,
): Promise<void> {
  const slotBytes = slotElements(rank, false) * 4;
  const { work, indices, count } = await partsOf(
    gpu,
    rows,
    Math.max(1, Math.min(PARTS, Math.floor(Math.min(PART_BYTES, gpu.info.limits.bindingBytes) / slotBytes))),
  );
  const { params, kernels } = gramKernels(gpu, rank);
  const [parts, sum] = await Promise.all(kernels);
  const slots = await gpu.scratch('slots', count * slotBytes);
  // The kernel also computes b from ratings, which is not used here. So any buffer may be bound for ratings.
  pass.dispatch(
    parts,
    { work, indices, values, fixed: values, slots },
    { count, alpha: 0, base: 0 },
    normalEquationsWorkgroups(params, count),
  );
  pass.dispatch(sum, { slots, gram }, { slot_count: count, weight }, gramSumWorkgroups({ rank }));
}

/** Starts to compile both kernels. */
export function gramKernels(gpu: Gpu, rank: number) {
  const params = chooseNormalEquations(rank, 'f32', false);
  const kernels = [gpu.compile(normalEquationsKernel, params), gpu.compile(gramSumKernel, { rank })] as const;
  return { params, kernels };
}

async function partsOf(gpu: Gpu, rows: number, most: number) {
  const known =
    lists.get(gpu) ??
    new Map<string, { readonly work: GPUBuffer; readonly indices: GPUBuffer; readonly count: number }>();
  lists.set(gpu, known);
  const key = `${rows} ${most}`;
  const found = known.get(key);
  if (found !== undefined) return found;
  const size = Math.max(LEAST_ROWS, Math.ceil(rows / most));
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
