import { milliseconds } from './bench-report.ts';
import {
  type BenchRun,
  CHECK_ITERATIONS,
  iterationCell,
  kernelCell,
  kernelTime,
  portableVariant,
  rmseCell,
  type Row,
  solveKernels,
  sumKernels,
  type Table,
} from '../bench-run.ts';

const STEPS = 6;

/** The solver's kernels on the same sums (cuMF_ALS, Figure 5). */
export function solversTable(rank: number): Table {
  return {
    name: 'solvers',
    rank,
    async run(bench) {
      bench.head(
        `Solvers, rank ${rank}: time of their kernels alone, all rows, normal equations from memory`,
        'Paper: cuMF_ALS Figure 5 (f = 100, f_s = 6, Netflix, Maxwell): CG-FP32 takes 1/4 of LU-FP32, CG-FP16 1/2 of CG-FP32.',
        [
          'solver',
          'solver ms an iteration',
          'of the first',
          'sums',
          'whole iteration',
          `test RMSE after ${CHECK_ITERATIONS}`,
          'paper',
        ],
      );
      let first: number | undefined;
      await bench.rows(solverRows(bench, rank), ({ label, paper = '' }, measured) => {
        const solve = kernelTime(measured, solveKernels);
        first ??= solve;
        return [
          label,
          milliseconds(solve),
          (solve / first).toFixed(2),
          kernelCell(measured, ...sumKernels),
          iterationCell(measured),
          rmseCell(measured),
          paper,
        ];
      });
    },
  };
}

/** Cholesky, then CG with A of either precision. */
function solverRows(bench: BenchRun, rank: number): Row[] {
  const variant = portableVariant(bench.training, rank, STEPS);
  const exact = portableVariant(bench.training, rank, 0);
  return [
    { label: 'Cholesky, f32', rank, steps: 0, variant: exact, paper: '1 (LU)' },
    {
      label: `CG ${STEPS}, A in f32`,
      rank,
      steps: STEPS,
      variant: { ...variant, registers: false },
      paper: '1/4',
    },
    {
      label: `CG ${STEPS}, A in f16`,
      rank,
      steps: STEPS,
      variant: { ...variant, registers: false, halfA: true },
      paper: '1/8',
    },
    ...[false, true]
      .filter(() => variant.registers)
      .map((halfA): Row => ({
        label: `CG ${STEPS} with subgroups, A in ${halfA ? 'f16' : 'f32'}`,
        rank,
        steps: STEPS,
        variant: { ...variant, halfA },
      })),
  ];
}
