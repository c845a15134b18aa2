import { compileKernels } from '../../cpu/compile-kernels.ts';
import { loadKernels } from '../../cpu/kernels.ts';
import { handlerOf } from '../../cpu/registry.ts';
import { CpuStore, MAXIMUM_PAGES } from '../../cpu/store.ts';
import { scopeOf } from '../../cpu/task-scope.ts';
import type { JsonObject } from '../../engine/json.ts';
import type { Partition } from '../../engine/partition.ts';
import type { TaskOutcome } from '../../engine/task.ts';
import {
  type TaskCase,
  type TaskResult,
  type TaskSample,
  taskSamples,
  worse,
} from '../../operators/tasks/samples.ts';
import { copiesChecks } from '../copies/copies.check.ts';
import { handlers } from '../generated/tasks.ts';
import type { GpuTaskScope } from '../handler.ts';
import { updateVariants } from '../update/choice/variants.ts';
import type { GpuInfo } from '../webgpu/gpu-info.ts';
import type { Gpu } from '../webgpu/gpu.ts';
import { halfIterationChecks, vectorChecks } from './half-iteration.check.ts';
import { normalEquationsChecks } from './normal-equations.check.ts';
import { sgdChecks } from './sgd.check.ts';
import { rowShiftsChecks, solveCgRegistersChecks, solveChecks } from './solve.check.ts';
import { type KernelCheck, CG_HALF_LIMIT } from './support/check.ts';
import { LONGEST } from './support/rated-problem.ts';
import { openTask } from './support/run-kernel.ts';
import { tensorChecks, toInt8Checks } from './tensor.check.ts';

/** Kernels of ALS's half-iteration that every GPU runs. */
export const updateChecks: readonly KernelCheck[] = [
  ...normalEquationsChecks,
  ...rowShiftsChecks,
  ...solveChecks,
  ...vectorChecks,
  ...toInt8Checks,
  ...copiesChecks,
];

/** Kernels for GPUs with subgroups of 32 threads, or with tensor cores. */
export const subgroupChecks: readonly KernelCheck[] = [...tensorChecks, ...solveCgRegistersChecks];

/**
 * All checks, including kernels that the adapter does not support. Half-iterations are only checked in the
 * variants that it supports.
 */
export function allChecks(info: GpuInfo): KernelCheck[] {
  const longest = info.software ? 1000 : LONGEST;
  const halfIterations = halfIterationChecks(info, longest);
  return [...updateChecks, ...subgroupChecks, ...taskChecks(), ...sgdChecks, ...halfIterations];
}

/** All checks of kernels that this GPU has the features and limits for. */
export function kernelChecks(gpu: Gpu): KernelCheck[] {
  return allChecks(gpu.info).filter((check) => check.admitted?.(gpu) ?? true);
}

/**
 * Checks of tasks that CPUs have too: the GPU's results on the sample inputs of the task's contract against
 * the CPU's results.
 */

/** Checks that are named for the task's largest kernel, not for the task. */
const kernelNames: Readonly<Record<string, string>> = {
  'rank-listed': 'count-before',
  update: 'wide-products',
  'update-implicit': 'wide-products',
};

export function taskChecks(): KernelCheck[] {
  return Array.from(taskSamples(), taskCheck);
}

export function taskCheck({ kernel, variant, make }: TaskCase): KernelCheck {
  return {
    name: kernelNames[kernel] ?? kernel,
    variant,
    run: async (gpu) => {
      const cpu = new CpuTasks();
      const sample = make();
      const ways = waysOf(sample, gpu.info);
      let error = 0;
      for (const params of sample.params) {
        const expected = cpu.run(fresh(sample), params);
        for (const way of ways) {
          const found = await onGpu(gpu, fresh(sample), { ...params, ...way.params });
          const difference = sample.difference(found, expected, params, sample.inputs);
          error = worse(error, ways.length === 1 ? difference : difference / way.limit);
        }
      }
      return { error, limit: ways.length === 1 ? ways[0].limit : 1 };
    },
  };
}

/** The sample with outputs of its own: a device may write to their memory. */
function fresh(sample: TaskSample): TaskSample {
  const { outputs = {} } = sample;
  const copies = Object.entries(outputs).map(([name, { columns, ...partition }]) => [
    name,
    { ...partition, columns: { values: columns.values.slice() } },
  ]);
  return { ...sample, outputs: Object.fromEntries(copies) as typeof outputs };
}

/** The variants of kernels that run a sample, if its task has several, and the limit of the error of each. */
function waysOf(
  { kernel, solver, params, inputs, outputs = {}, halves = [], limit }: TaskSample,
  info: GpuInfo,
): readonly { readonly params: JsonObject; readonly limit: number }[] {
  if (solver === undefined) return [{ params: {}, limit }];
  const { rank, implicit } = params[0] as { readonly rank: number; readonly implicit?: object };
  const problem = {
    rank,
    solver,
    cgSteps: 1,
    biases: 'fixedBias' in inputs || 'bias' in outputs,
    implicit: 'gram' in inputs || implicit !== undefined,
    prior: 'prior' in inputs,
  };
  const sums = kernel === 'normal-equations';
  const wide = kernel.startsWith('update');
  return updateVariants(info, problem)
    .filter(
      ({ fused, short, sum, precision }) =>
        fused === undefined &&
        short === 0 &&
        sum.kernel !== 'int8' &&
        (wide || sum.kernel !== 'vectors') &&
        (!(sums || wide) || (precision === 'f16') === halves.includes('fixed')),
    )
    .map(({ name, precision, sum, halfA }) => ({
      params: { variant: name, precision, ratingScale: precision === 'f16' ? 0.5 : 1 },
      limit: !sums
        ? Math.max(limit, halfA && solver === 'cg' ? CG_HALF_LIMIT : 0)
        : sum.kernel !== 'tensor'
          ? limit
          : problem.implicit
            ? WEIGHTED_HALF_LIMIT
            : TENSOR_SUM_LIMIT,
    }));
}

/**
 * Limits of the error of sums on tensor cores, relative to the largest number in a row's equations; and where
 * rows of θ are multiplied by the roots of weights in float16.
 */
const TENSOR_SUM_LIMIT = 1e-4;
const WEIGHTED_HALF_LIMIT = 1e-3;

async function onGpu(gpu: Gpu, sample: TaskSample, params: JsonObject): Promise<TaskResult> {
  const task = await openTask(gpu, params, sample.inputs, sample);
  try {
    const handler = handlers[sample.kernel as keyof typeof handlers] as (
      scope: GpuTaskScope,
    ) => Promise<TaskOutcome>;
    const { values = {}, partitions = {} } = await handler(task.scope);
    const outputs = { ...partitions };
    for (const name of Object.keys(sample.outputs ?? {})) outputs[name] = await task.fetch(name);
    return { values: values as TaskResult['values'], outputs };
  } finally {
    task.close();
  }
}

/** Runs the CPU's handlers in this thread. */
class CpuTasks {
  static readonly #compiled = compileKernels();
  readonly #memory = new WebAssembly.Memory({ initial: 2, maximum: MAXIMUM_PAGES, shared: true });

  run({ kernel, inputs, outputs = {} }: TaskSample, params: JsonObject): TaskResult {
    const store = new CpuStore(1, { memory: this.#memory });
    const refOf = (name: string) => ({ name, partition: 0, version: 0 });
    const put = (given: Readonly<Record<string, Partition>>) =>
      Object.fromEntries(
        Object.entries(given).map(([name, partition]) => {
          store.put(refOf(name), partition);
          return [name, refOf(name)];
        }),
      );
    const data = store.dataOf({ inputs: put(inputs), outputs: put(outputs) });
    const scope = scopeOf(
      { kernel, params, ...data, scratch: store.scratch[0] },
      {
        memory: this.#memory,
        kernels: loadKernels(this.#memory, CpuTasks.#compiled),
        cancelled: () => false,
      },
    );
    const { values = {}, partitions = {} } = handlerOf(kernel)!(scope);
    const written = Object.keys(outputs).map((name) => [name, store.read(refOf(name))!] as const);
    store.clear();
    return {
      values: values as TaskResult['values'],
      outputs: { ...partitions, ...Object.fromEntries(written) },
    };
  }
}
