import { resolve, sep } from 'node:path';
import { UsageError } from '../../engine/errors.ts';
import type { Trace } from '../../index.ts';
import { checkWritable } from './check-output.ts';
import { refuseOverlap } from './check-overlap.ts';

/** The file of --trace, and the paths that the command reads and writes. */
export interface TraceRequest {
  readonly file: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
}

/** Opens the trace of a command. Throws UsageError for a place where it would be taken for data. */
export async function openTrace({ file, inputs, outputs }: TraceRequest): Promise<Trace> {
  await refuseOverlap(file, inputs);
  for (const output of outputs) {
    if (`${resolve(file)}${sep}`.startsWith(`${resolve(output)}${sep}`)) throw new UsageError(`--trace lies in the output ${output}`, { phase: 'write', file, advice: 'Name another file' });
  }
  if (file !== '-') await checkWritable(file);
  return (await import('../../api/trace.ts')).Trace.open(file);
}
