/**
 * The kernel `normal-equations` without one of its techniques, to measure what the technique gains. Each
 * ablation is a list of edits of the shipped shader's text.
 */
import {
  type NormalEquationsParams,
  normalEquationsKernel,
  normalEquationsWorkgroups,
} from '../../gpu/equations/normal-equations.ts';
import { kernelTexts } from '../../gpu/generated/kernels-wgsl.ts';
import { prepareRows } from '../../gpu/update/prepared-rows.ts';
import type { UpdateVariant } from '../../gpu/update/choice/variant.ts';
import { median } from '../harness.ts';
import type { HalfIterations } from './training.ts';

type Kernel = typeof normalEquationsKernel;

interface Ablation {
  readonly label: string;
  readonly paper: string;
  /** Each text must occur once in the shader, and is replaced by the other. */
  readonly edits: readonly (readonly [shipped: string, ablated: string])[];
  /** Template values that differ. */
  values?(params: NormalEquationsParams): Readonly<Record<string, unknown>>;
  /** The blocks of A that are summed; default: the lower triangle. */
  blocks?(side: number): number;
}

const placeInSlot = `  let slot = part.w * SLOT_QUADS;
  let tile = place * TILE / 16;
  let within = place * TILE % 16;
  let kept = exists && block == group * LANES + lane && tile.x >= tile.y;
  let corner = slot + (tile.x * (tile.x + 1) / 2 + tile.y) * 64 + within.x * 4 + within.y / 4;
`;

export const ablations: Readonly<Record<string, Ablation>> = {
  registers: {
    label: 'A grows in memory, not in registers',
    paper: 'cuMF Fig. 7: 2.5 times as slow',
    edits: [
      [`  // After the loop, so that the loop has more registers for sums.\n${placeInSlot}`, ''],
      [
        '  let place = triangle_place(block);\n{% for sum in sums %}\n  var {{ sum.name }} = vec4f();\n',
        `  let place = triangle_place(block);\n${placeInSlot}{% for sum in sums %}\n  var {{ sum.name }} = vec4f();\n  if (kept) { slots[corner + {{ sum.offset }}] = vec4f(); }\n`,
      ],
      [
        '{{ sum.name }} = fma(vec4f(left_{{ sum.left }}), right_{{ sum.right }}, {{ sum.name }});',
        'if (kept) { slots[corner + {{ sum.offset }}] = fma(vec4f(left_{{ sum.left }}), right_{{ sum.right }}, slots[corner + {{ sum.offset }}]); }',
      ],
      [
        '    slots[corner + {{ sum.offset }}] = {{ sum.name }};',
        '    {{ sum.name }} = slots[corner + {{ sum.offset }}];',
      ],
    ],
  },
  symmetry: {
    label: 'both triangles',
    paper: 'cuMF_ALS III: lower half only',
    edits: [
      ['let place = triangle_place(block);', 'let place = vec2u(block / SIDE, block % SIDE);'],
      ['if (tile.x == tile.y && place.x != place.y) {', 'if (false) {'],
    ],
    blocks: (side) => side * side,
  },
  coalescing: {
    label: 'strided (non-coalesced) staging',
    paper: 'cuMF_ALS Fig. 4: loads fastest',
    edits: [
      ['let team = lane / UNITS;', 'let team = lane % TEAMS;'],
      ['let own = lane % UNITS;', 'let own = lane / TEAMS;'],
    ],
  },
  vectors: {
    label: '4 bytes a load, no vectors',
    paper: 'clMF Fig. 9: slightly slower',
    edits: [
      ['-> {{ element }} {', '-> {{ loaded }} {'],
      ['    return {{ element }}();', '    return {{ loaded }}();'],
      [
        '  return fixed[column * UNITS_OF_ROW + unit];',
        '  let at = 4 * (column * UNITS_OF_ROW + unit);\n  return {{ loaded }}(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]);',
      ],
    ],
    values: ({ precision }) =>
      precision === 'f32' ? { element: 'f32', loaded: 'vec4f' } : { element: 'u32', loaded: 'vec4u' },
  },
};

/** The kernel without the technique, and its workgroups for `count` parts of rows. */
export function ablatedSums(
  without: keyof typeof ablations,
  params: NormalEquationsParams,
): { readonly kernel: Kernel; readonly workgroups: (count: number) => number } {
  const { edits, values, blocks } = ablations[without];
  const name = `normal-equations-without-${without}`;
  (kernelTexts as Record<string, string>)[name] = edits.reduce((text, [shipped, ablated]) => {
    if (text.split(shipped).length !== 2) throw new Error(`the shader does not have once: ${shipped}`);
    return text.replace(shipped, () => ablated);
  }, kernelTexts[normalEquationsKernel.name]);
  const all = blocks?.(Math.ceil(params.rank / params.tile));
  const groups = all === undefined ? undefined : Math.ceil(all / params.lanes);
  return {
    kernel: {
      ...normalEquationsKernel,
      name,
      values: (given) => ({
        ...normalEquationsKernel.values(given),
        ...values?.(given),
        ...(groups === undefined ? {} : { BLOCKS: all, GROUPS: groups }),
      }),
    },
    workgroups: (count) =>
      groups === undefined
        ? normalEquationsWorkgroups(params, count)
        : Math.ceil(count / params.rows) * groups,
  };
}

/** Median GPU milliseconds in which a kernel sums the equations of both sides; undefined: the shipped one. */
export async function timeSums(
  training: HalfIterations,
  { variant, params }: { readonly variant: UpdateVariant; readonly params: NormalEquationsParams },
  without?: keyof typeof ablations,
): Promise<number> {
  const { kernel, workgroups } =
    without === undefined
      ? {
          kernel: normalEquationsKernel,
          workgroups: (count: number) => normalEquationsWorkgroups(params, count),
        }
      : ablatedSums(without, params);
  const { gpu, users, items } = training;
  const compiled = await gpu.compile(kernel, params);
  const { x, theta } = training.factors();
  const run = async () => {
    const pass = gpu.pass('sums');
    for (const [block, fixed] of [[users, theta] as const, [items, x] as const]) {
      const rows = { variant, from: 0, to: block.rows, rank: params.rank, lambda: 0 };
      const { batches, slotBytes } = await prepareRows(gpu, block, rows, fixed.rows, false);
      const slots = await gpu.scratch('slots', slotBytes);
      const { indices, values } = block;
      for (const { parts, partCount } of batches)
        pass.dispatch(
          compiled,
          { work: parts, indices, values, fixed: fixed.values, slots },
          { count: partCount, alpha: 0, base: 0 },
          workgroups(partCount),
        );
    }
    return Object.values((await pass.submit({ timed: true })).times).reduce((sum, time) => sum + time, 0);
  };
  await run();
  const times: number[] = [];
  for (let time = 0; time < 5; time++) times.push(await run());
  return median(times);
}
