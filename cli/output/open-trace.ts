import type { Trace } from '../../index.ts';
import { checkWritable } from '../../api/output/check-output.ts';

/** Opens the trace of a command. Throws UsageError for a file that is not a trace. */
export async function openTrace(file: string): Promise<Trace> {
  if (file !== '-') await checkWritable(file);
  return (await import('../../api/reports/trace.ts')).Trace.open(file);
}
