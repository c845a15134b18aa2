import { normalEquationsTensorKernel } from '../../../gpu/equations/normal-equations-tensor.ts';
import { updateTensorKernel } from '../../../gpu/update/update-tensor.ts';
import { subgroupsFor } from '../../../gpu/equations/tensor-plan.ts';
import type { UpdateVariant } from '../../../gpu/update/choice/variant.ts';
import type { Gpu } from '../../../gpu/webgpu/gpu.ts';
import {
  type BenchRun,
  CHECK_ITERATIONS,
  iterationCell,
  kernelCell,
  rmseCell,
  type Row,
  shortKernels,
  solveKernels,
  sumKernels,
  type Table,
  teraflops,
} from '../bench-run.ts';

const STEPS = 6;

/** Largest rank for which float32 A fits in a workgroup's registers. */
const FULL_REGISTERS = 128;

/** Gains of tensor cores, float16 and solving in place, and of related settings. */
export function tensorTable(rank: number): Table {
  return {
    name: 'tensor',
    rank,
    async run(bench) {
      const variants = bench.training.variants(rank, STEPS);
      const base = variants.find(({ fused }) => fused !== undefined);
      if (base === undefined)
        return bench.line(
          `\nTensor cores, rank ${rank}: skipped, ${bench.training.gpu.info.name} has none that WebGPU can use, or they do not serve this rank`,
        );
      const { rows, missing } = settings(bench, rank, base, variants);
      bench.head(
        `Tensor cores, rank ${rank}: CG ${STEPS} steps; each line differs from the first in one thing`,
        "Papers: cuMF_ALS section IV-B and Figure 5 (A in FP16 halves the solver's time), Figure 7a (FLOPS of get_hermitian); neither has tensor cores or solves in place.",
        [
          'differs',
          'ms an iteration (users + items)',
          'of the first',
          'useful TFLOP/s',
          'in place',
          'short rows',
          'sums',
          'solver',
          `test RMSE after ${CHECK_ITERATIONS}`,
        ],
      );
      const { ratings } = bench.training.users;
      let first: number | undefined;
      await bench.rows(
        [{ label: describe(base), rank, steps: STEPS, variant: base }, ...rows],
        ({ label }, measured) => {
          first ??= measured.wall;
          return [
            label,
            iterationCell(measured),
            (measured.wall / first).toFixed(2),
            teraflops(ratings, rank, measured.wall).toFixed(1),
            kernelCell(measured, 'update-tensor'),
            kernelCell(measured, ...shortKernels),
            kernelCell(measured, ...sumKernels),
            kernelCell(measured, ...solveKernels),
            rmseCell(measured),
          ];
        },
      );
      if (missing.length > 0) bench.line(`\nNot admitted: ${missing.join('; ')}`);
    },
  };
}

function settings(
  { training }: BenchRun,
  rank: number,
  base: UpdateVariant,
  variants: readonly UpdateVariant[],
): { readonly rows: Row[]; readonly missing: string[] } {
  const rows: Row[] = [];
  const missing: string[] = [];
  const { fused, short } = base;
  const halfA = fused?.halfA ?? base.halfA;
  const other = (label: string, variant: UpdateVariant | undefined) => {
    if (variant === undefined) missing.push(label);
    else rows.push({ label, rank, steps: STEPS, variant });
  };
  const tiles = (precision: 'f32' | 'f16') =>
    variants.find(({ sum, precision: own }) => sum.kernel === 'tiled' && own === precision);
  other('no tensor cores: register tiles, θ in f16', tiles('f16'));
  other('no tensor cores: register tiles, θ in f32', tiles('f32'));
  other('not in place: A through memory', { ...base, fused: undefined });
  for (const longest of [0, 32, 64]) {
    if (longest === short) continue;
    const admitted = variants.find((variant) => variant.fused !== undefined && variant.short === longest);
    other(longest === 0 ? 'no dual systems' : `dual systems to ${longest} ratings`, admitted);
  }
  other(
    halfA ? 'A in f32' : 'A/n in f16',
    halfA && rank > FULL_REGISTERS
      ? undefined
      : { ...base, halfA: !halfA, fused: fused && { ...fused, halfA: !halfA } },
  );
  if (fused !== undefined)
    for (const [label, variant] of inPlace(training.gpu, rank, base, fused)) other(label, variant);
  other('long rows not split', { ...base, partRatings: 2 ** 31 });
  return { rows, missing };
}

/** Other bins and limits of solving in place; undefined if the GPU does not support them. */
function* inPlace(
  gpu: Gpu,
  rank: number,
  base: UpdateVariant,
  fused: NonNullable<UpdateVariant['fused']>,
): Generator<readonly [label: string, UpdateVariant | undefined]> {
  const { halfA } = fused;
  for (const bin of [16, 32, 48, 64].filter((one) => one !== fused.bin)) {
    const admitted =
      bin <= subgroupsFor(rank) * 32 &&
      gpu.admits(updateTensorKernel, { rank, bin, biases: false, halfA }) &&
      gpu.admits(normalEquationsTensorKernel, { rank, bin, biases: false });
    yield [
      `bin ${bin}`,
      admitted ? { ...base, sum: { kernel: 'tensor', bin }, fused: { ...fused, bin } } : undefined,
    ];
  }
  for (const longest of [1024, 2048, 4096, 8192].filter((one) => one !== fused.longest))
    yield [`in place to ${longest} ratings`, { ...base, fused: { ...fused, longest } }];
}

function describe({ fused, short, halfA: solverHalfA }: UpdateVariant): string {
  return `all on: in place to ${fused?.longest} ratings, bin ${fused?.bin}, dual systems to ${short}, ${(fused?.halfA ?? solverHalfA) ? 'A/n in f16' : 'A in f32'}`;
}
