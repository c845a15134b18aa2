import { mostRank } from '../../api/check-objects.ts';
import { describeMachine, type Machine, type WebGpuFacts, webGpuFacts } from '../../api/inspect/machine.ts';
import { UsageError } from '../../engine/errors.ts';
import { formatBytes } from '../../engine/format.ts';
import { columnOptions } from '../options/data/data-options.ts';
import { choice, listOf, option, toggle, wholeNumber } from '../options/kinds.ts';
import { grouped, refuseFlags } from '../options/option.ts';
import { commonOptions } from '../options/output-options.ts';
import { tables } from '../options/training/param-options.ts';
import { facts } from '../report/facts.ts';
import { defineCommand, words } from './command.ts';

/** Whole numbers separated by commas. */
const ranksOption = {
  ...option(
    'for --tune: ranks to tune for',
    { defaultText: '64,100,128', fallback: [64, 100, 128] as readonly number[] },
    `whole numbers from 1 to ${mostRank}, separated by commas, such as 64,100`,
    (given): readonly number[] | undefined => {
      const parts = typeof given === 'number' ? [given] : typeof given === 'string' ? given.split(',') : [];
      const ranks = parts.map((part) => (/^\s*\d{1,4}\s*$/.test(String(part)) ? Number(part) : 0));
      const isKnown = ranks.length > 0 && ranks.every((rank) => rank >= 1 && rank <= mostRank);
      return isKnown ? [...new Set(ranks)] : undefined;
    },
  ),
  isList: true,
};

const options = {
  ...grouped('Options:', {
    checkKernels: toggle(
      'compare every GPU kernel with the CPU on this adapter, also if it is software; ' +
        'exit code 5 if a kernel is wrong',
    ),
    kernel: listOf('for --check-kernels: the kernels to check, by their names in its report', {
      defaultText: 'all',
    }),
    workers: wholeNumber(
      'for --check-kernels: devices of the card that check at the same time, each with a thread',
      { least: 1, most: 64, defaultText: 'three for four cores, at most 12' },
    ),
    tune: toggle(
      "time the GPU's kernels, on ratings or generated ones; training on data of that shape then uses " +
        'the fastest',
    ),
    rank: ranksOption,
    solver: choice('for --tune: see train', { choices: tables.als.params.solver.choices, fallback: 'auto' }),
    biases: { ...toggle('for --tune: see train'), off: 'for --tune: see train', fallback: true },
  }),
  ...columnOptions,
  ...commonOptions,
};

const tuneFlags = ['rank', 'solver', 'biases', 'userCol', 'itemCol', 'ratingCol'] as const;

export const command = defineCommand({
  summary: 'Show versions, processor, memory and GPU; check and tune its kernels',
  positionals: [
    words('ratings', 'for --tune: files or folders of ratings like those you train on', { required: false }),
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
    if (values.checkKernels && values.tune)
      refuseFlags(given, ['tune'], 'and --check-kernels exclude each other', 'Run one after the other');
    if (!values.checkKernels) refuseFlags(given, ['kernel', 'workers'], 'acts only with --check-kernels');
    if (values.tune)
      return (await import('../doctor/tune.ts')).tune(
        { ...values, columns: { userCol, itemCol, ratingCol }, paths: positionals.ratings },
        context,
      );
    if (positionals.ratings.length > 0)
      throw new UsageError(`unknown argument "${positionals.ratings[0]}"`, {
        advice: 'Give ratings with --tune',
      });
    refuseFlags(given, tuneFlags, 'acts only with --tune');
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
