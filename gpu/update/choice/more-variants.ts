import type { UpdateProblem } from '../../../operators/tasks/tasks.ts';
import { chooseNormalEquations, normalEquationsKernel } from '../../equations/normal-equations.ts';
import { normalEquationsTensorKernel } from '../../equations/normal-equations-tensor.ts';
import type { GpuInfo } from '../../webgpu/gpu-info.ts';
import { admits } from '../../webgpu/kernel.ts';
import type { UpdateVariant } from './variant.ts';
import { admitsFused, admitsInt8, fullRegisters } from './admits-fused.ts';

type Shape = Pick<UpdateProblem, 'rank' | 'solver' | 'biases' | 'implicit'>;

/**
 * A change of one setting of a variant. `part` is appended to the variant's name. `apply` returns the changed
 * variant, or undefined if the change does not apply to it.
 */
interface Change {
  readonly part: string;
  apply(variant: UpdateVariant, shape: Shape): UpdateVariant | undefined;
}

/**
 * All changes, in groups of alternatives: a derived variant has at most one change of each group. Names list
 * changes in the order of the groups.
 */
const changes: readonly (readonly Change[])[] = [
  [1024, 8192].map((longest) => ({
    part: `to${longest}`,
    apply: (variant) => variant.fused && { ...variant, fused: { ...variant.fused, longest } },
  })),
  [
    {
      part: 'cores',
      apply: (variant, { implicit = false }) =>
        variant.fused === undefined || variant.fused.halfA || implicit
          ? undefined
          : { ...variant, fused: { ...variant.fused, halfA: true } },
    },
    {
      part: 'registers',
      apply: (variant, { rank }) =>
        variant.fused?.halfA === true && rank <= fullRegisters(variant.sum)
          ? { ...variant, fused: { ...variant.fused, halfA: false, room: undefined } }
          : undefined,
    },
  ],
  [64, 128].map((threads) => ({ part: `threads${threads}`, apply: withThreads(threads) })),
  [16, 32, 64].map((bin) => ({
    part: `bin${bin}`,
    apply: (variant) => (variant.sum.kernel === 'tensor' ? binned(variant, variant.sum, bin) : undefined),
  })),
];

function binned(
  variant: UpdateVariant,
  sum: Extract<UpdateVariant['sum'], { readonly kernel: 'tensor' }>,
  bin: number,
): UpdateVariant | undefined {
  if (sum.bin === bin && (variant.fused?.bin ?? bin) === bin) return undefined;
  return { ...variant, sum: { ...sum, bin }, fused: variant.fused && { ...variant.fused, bin } };
}

/** Workgroups of at most `threads` threads for register tiles, if that differs from the rule. */
function withThreads(threads: number): Change['apply'] {
  return (variant, { rank, biases }) => {
    const { sum, precision } = variant;
    if (sum.kernel !== 'tiled' || precision === 'int8') return undefined;
    const { lanes, rows, teams, loads } = chooseNormalEquations(rank, precision, biases, {
      threads,
      tile: sum.tile,
    });
    if (lanes === sum.lanes && rows === sum.rows) return undefined;
    return { ...variant, sum: { ...sum, lanes, rows, teams, loads } };
  };
}

/**
 * Derives variants from the given ones by one or more changes of settings. A derived variant is named after
 * its base and the changes: "tensor-fused-short64-to1024-bin16", "tiled8-f32-threads64". It is only used
 * if the tuner measured it fastest or a user names it. Derived variants exist because the fastest settings
 * differ from device to device and must be measured (clMF, section 3).
 */
export function moreVariants(info: GpuInfo, shape: Shape, among: readonly UpdateVariant[]): UpdateVariant[] {
  return among.flatMap((variant) => {
    let grown = [variant];
    for (const group of changes) grown = grown.concat(grown.flatMap((one) => applied(one, group, shape)));
    return grown.slice(1).filter((one) => runs(info, one, shape));
  });
}

function applied(variant: UpdateVariant, group: readonly Change[], shape: Shape): UpdateVariant[] {
  return group.flatMap(({ part, apply }) => {
    const changed = apply(variant, shape);
    return changed === undefined ? [] : [{ ...changed, name: `${variant.name}-${part}` }];
  });
}

function runs(
  info: GpuInfo,
  { precision, sum, fused }: UpdateVariant,
  { rank, biases, implicit = false }: Shape,
): boolean {
  if (sum.kernel === 'tensor') {
    if (fused !== undefined && !admitsFused(info, { rank, biases, implicit }, fused.bin, fused)) return false;
    return admits(info, normalEquationsTensorKernel, { rank, bin: sum.bin, biases, implicit });
  }
  if (sum.kernel === 'vectors') return true;
  if (sum.kernel === 'int8' || precision === 'int8')
    return fused === undefined || admitsInt8(info, { rank, biases }, fused);
  const { kernel: _kernel, ...tiles } = sum;
  return admits(info, normalEquationsKernel, { rank, precision, biases, implicit, ...tiles });
}

/**
 * The variants that differ from the variant `name` in exactly one setting, as their names show: "tiled4-f32"
 * differs from "tiled8-f32" in one hyphenated part, and "tensor-short32" has one more part than "tensor".
 */
export function neighboursOf(name: string, among: readonly UpdateVariant[]): UpdateVariant[] {
  const own = partsOf(name);
  return among.filter((variant) => {
    const other = partsOf(variant.name);
    const kinds = new Set([...own.keys(), ...other.keys()]);
    return [...kinds].filter((kind) => own.get(kind) !== other.get(kind)).length === 1;
  });
}

/**
 * Splits a name at its hyphens. Each part is keyed by its text without trailing digits: "tiled" for "tiled8",
 * "f" for "f16".
 */
function partsOf(name: string): ReadonlyMap<string, string> {
  return new Map(name.split('-').map((part) => [part.replace(/\d+$/, ''), part]));
}
