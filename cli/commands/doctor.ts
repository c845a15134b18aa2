import { UsageError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import { defineCommand } from './command.ts';
import { bounds } from '../../api/check-objects.ts';
import { describeMachine, type Machine, type WebGpuFacts, webGpuFacts } from '../../api/inspect/machine.ts';
import { facts } from '../report/facts.ts';
import { columnOptions } from '../options/data/data-options.ts';
import { choice, listOf, shown, toggle, wholeNumber } from '../options/kinds.ts';
import { flagName, type Option } from '../options/option.ts';
import { commonOptions } from '../options/output-options.ts';
import { tables } from '../options/training/param-options.ts';

/** Whole numbers separated by commas. */
const ranksOption: Option<readonly number[]> = {
  describe: 'for --tune: ranks to tune for',
  group: 'Options:',
  isList: true,
  defaultText: '64,100,128',
  fallback: [64, 100, 128],
  read: (given, flag) => {
    const parts =
      typeof given === 'number'
        ? [String(given)]
        : typeof given === 'string'
          ? given.split(',').map((part) => part.trim())
          : [];
    const ranks = parts.map((part) => (/^\d{1,4}$/.test(part) ? Number(part) : 0));
    if (ranks.length > 0 && ranks.every((rank) => rank >= 1 && rank <= bounds.rank))
      return [...new Set(ranks)];
    throw new UsageError(
      `${flag} must be whole numbers from 1 to ${bounds.rank}, separated by commas, such as 64,100, ` +
        `got ${shown(given)}`,
    );
  },
};

const options = {
  checkKernels: toggle({
    describe:
      'compare every GPU kernel with its float64 version on this adapter, also if it is software; ' +
      'exit code 5 if a kernel is wrong',
    group: 'Options:',
  }),
  kernel: listOf({
    describe: 'for --check-kernels: the kernels to check, by their names in its report',
    group: 'Options:',
    defaultText: 'all',
  }),
  workers: wholeNumber({
    describe: 'for --check-kernels: devices of the card that check at the same time, each with a thread',
    group: 'Options:',
    least: 1,
    most: 64,
    defaultText: 'three for four cores, at most 12',
  }),
  tune: toggle({
    describe:
      "time the GPU's kernels, on ratings or generated ones; training on data of that shape then uses " +
      'the fastest',
    group: 'Options:',
  }),
  rank: ranksOption,
  solver: choice({
    describe: 'for --tune: see train',
    group: 'Options:',
    choices: tables.als.params.solver.choices,
    fallback: 'auto',
  }),
  biases: {
    ...toggle({ describe: 'for --tune: see train', group: 'Options:' }),
    off: 'for --tune: see train',
    fallback: true,
  },
  ...columnOptions,
  ...commonOptions,
};

/** Flags of --tune, and of --check-kernels. */
const tuneFlags = ['rank', 'solver', 'biases', 'userCol', 'itemCol', 'ratingCol'] as const;
const checkFlags = ['kernel', 'workers'] as const;

export const doctor = defineCommand({
  summary: 'Show versions, processor, memory and GPU; check and tune its kernels',
  positionals: [
    {
      name: 'ratings',
      describe: 'for --tune: files or folders of ratings like those you train on',
      required: false,
      many: true,
    },
  ],
  options,
  examples: [
    ['doctor', 'print what belongs to a report'],
    ['doctor --check-kernels', 'check that the GPU and its driver compute correctly'],
    ['doctor --check-kernels --kernel top-n,sgd-tiles', 'check two kernels'],
    [
      'doctor --tune --rank 64,128 ratings/',
      'find the fastest kernels for these ratings; later runs take them',
    ],
  ],
  run: async ({ values, given, positionals }, context) => {
    const { signal } = context;
    const { userCol, itemCol, ratingCol } = values;
    if (values.tune && values.checkKernels)
      throw new UsageError('--tune and --check-kernels exclude each other', {
        advice: 'Run one after the other',
      });
    const forChecks = values.checkKernels ? undefined : checkFlags.find((name) => given.has(name));
    if (forChecks !== undefined)
      throw new UsageError(`--${flagName(forChecks)} acts only with --check-kernels`);
    if (values.tune)
      return (await import('../doctor/tune.ts')).tune(
        { ...values, columns: { userCol, itemCol, ratingCol }, paths: positionals.ratings },
        context,
      );
    if (positionals.ratings.length > 0)
      throw new UsageError(`unknown argument "${positionals.ratings[0]}"`, {
        advice: 'Give ratings with --tune',
      });
    const useless = tuneFlags.find((name) => given.has(name));
    if (useless !== undefined) throw new UsageError(`--${flagName(useless)} acts only with --tune`);
    if (values.checkKernels)
      return (await import('../doctor/check-kernels.ts')).checkKernels(
        { kernels: values.kernel, workers: values.workers },
        context,
      );
    const machine = describeMachine();
    const { backend, ...found } = await webGpuFacts(signal);
    const webgpu = { ...found, adapter: found.adapter && { ...found.adapter, backend } };
    return {
      json: { command: 'doctor', ...machine, webgpu },
      text: doctorText(machine, { ...found, backend }),
    };
  },
});

/** Features that kernels use; --json prints all. */
const computing = ['shader-f16', 'subgroups', 'subgroup-size-control', 'timestamp-query'];

function doctorText(
  { versions, os, cpu, memory, webAssembly }: Machine,
  { adapter, backend, advice }: WebGpuFacts,
): string {
  const limit = memory.limit === null ? '' : `, of which this process may use ${formatBytes(memory.limit)}`;
  const kernels = {
    'relaxed-simd': 'SIMD with relaxed fused multiply-add',
    simd: 'SIMD without fused multiply-add (this runtime lacks relaxed SIMD)',
  };
  return facts([
    ...Object.entries(versions).map(([name, version]) => [name, version ?? 'not installed'] as const),
    ['system', os],
    [
      'processor',
      `${cpu.model}, ${cpu.cores} ` +
        `cores${cpu.usable === cpu.cores ? '' : `, ${cpu.usable} of them for this process`}`,
    ],
    ['memory', `${formatBytes(memory.total)}, ${formatBytes(memory.free)} free${limit}`],
    [
      'WebAssembly',
      webAssembly === null
        ? 'no SIMD: the CPU kernels cannot run here; use Node 22.12 or newer on a processor with ' +
          'SSE4.1 or NEON'
        : kernels[webAssembly],
    ],
    [
      'WebGPU',
      adapter === null
        ? 'no adapter; the CPU is used, which needs none'
        : `${[adapter.name, adapter.vendor, adapter.architecture].filter((part) => part !== '').join(', ')}, by ${backend}`,
    ],
    [
      'features',
      adapter &&
        computing.map((name) => `${name} ${adapter.features.includes(name) ? 'yes' : 'no'}`).join(', '),
    ],
    ['advice', advice],
  ]);
}
