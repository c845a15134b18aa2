import type { JsonObject } from '../../../engine/json.ts';
import type { Stage } from '../../../engine/plan/stages.ts';
import { equationColumns } from '../../tasks/equation-tasks.ts';
import type { Side } from './grid.ts';
import { heldBy, kernelOf, measuredOf, stepsTaken } from './half-iteration.ts';
import { solverParams } from '../solver-choice.ts';
import { PartedSide } from './parted-side.ts';
import type { AlsProblem } from './problem.ts';

/** Stages that allocate the normal equations and add the ratings of each part of the fixed side to them. */
export function formingStages(problem: AlsProblem, side: Side, parted: PartedSide): Stage[] {
  const { params, profile, choices } = problem;
  const { rank: f, biases } = params;
  const { collected, partitions, sharing } = parted;
  const { p, q } = partitions;
  const choice = choices?.[side];
  const bytes = parted.bytes(equationColumns(f, biases));
  return [
    parted.zeros(`allocate-equations-${side}`, collected),
    parted.overBlocks(
      `equations-${side}`,
      {
        kernel: 'normal-equations',
        uses: { ...parted.fixed, equations: collected },
        params: { ...kernelOf(choice) },
      },
      {
        kernel: ['normal-equations', choice?.variant].filter((part) => part !== undefined).join(' '),
        bytesWritten: sharing * bytes,
        flops: profile.ratings * f * (f + 1),
        ...heldBy(choice, 1 / (p * q)),
        reasons: [
          `p = ${p}: each part of the fixed side adds its ratings to the normal equations of its rows`,
          ...(choice === undefined ? [] : [choice.reason]),
        ],
      },
    ),
  ];
}

/**
 * Stages that form the (partial) normal equations of a side's rows, add them up over all devices, and solve
 * them.
 */
export function equationStages(problem: AlsProblem, side: Side): Stage[] {
  const { params, solver, choices } = problem;
  const { rank: f, biases } = params;
  const parted = new PartedSide(problem, side);
  const { solved, partitions, collected } = parted;
  const kernel: JsonObject = { ...kernelOf(choices?.[side]) };
  const bytes = parted.bytes(equationColumns(f, biases));
  return parted.pipeline([
    ...formingStages(problem, side, parted),
    ...parted.reduce(`reduce-${side}`, collected, solved.equations, bytes),
    parted.overRows(
      `update-${side}`,
      {
        kernel: 'solve-equations',
        uses: {
          equations: { set: solved.equations, version: 'last' },
          previous: { set: solved.factors, version: 'old' },
          factors: solved.factors,
          ...(solved.bias ? { bias: solved.bias } : {}),
          ...parted.implicit,
        },
        params: { ...solverParams(solver), ...measuredOf(problem, side), ...kernel },
        ...stepsTaken(problem),
      },
      {
        kernel: `solve-equations ${solver.kernel}`,
        partitions,
        bytesRead: bytes,
        bytesWritten: parted.bytes(f),
        reasons: side === 'items' ? [solver.reason] : [],
      },
    ),
  ]);
}
