import type { OpenSinkOptions } from '../../connectors/open-sink.ts';
import type { OpenSourceOptions } from '../../connectors/open-source.ts';
import type { WriteSummary } from '../../connectors/parquet-sink.ts';
import type { EventSink } from '../../engine/events.ts';
import { fromSource, runInto } from '../../engine/logical-plan.ts';
import { RunMetrics } from '../../engine/metrics.ts';

interface Surroundings {
  readonly signal: AbortSignal;
  readonly events: EventSink;
  readonly expect: (phase: string, total: number) => void;
}

/** Copies rows from files to files, on this thread: no device takes part. */
export async function convertFiles(paths: readonly string[], input: OpenSourceOptions, output: string, options: OpenSinkOptions, { signal, events, expect }: Surroundings): Promise<WriteSummary> {
  const { openSink } = await import('../../connectors/open-sink.ts');
  const { openSource } = await import('../../connectors/open-source.ts');
  const sink = openSink(output, options);
  await sink.check();
  const source = await openSource(paths, input);
  const known = await source.statistics?.();
  if (known !== undefined) expect('write', known.rows);
  const executor = { devices: [], close: async () => {} };
  return runInto(fromSource(source), sink, { signal, events, executor, metrics: new RunMetrics() });
}
