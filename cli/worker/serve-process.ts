import { packageInfo } from '../../api/package-info.ts';
import type { SessionOptions } from '../../api/session-options.ts';
import { ParentInput } from '../../api/worker/parent-input.ts';
import { isHostError } from '../../api/worker/parent-link.ts';
import { writeStandard } from '../../connectors/output/standard-output.ts';
import { CancelledError, FactorFlowError } from '../../engine/errors.ts';
import type { JsonObject } from '../../index.ts';
import { reportError } from '../report/report-error.ts';
import { trainingJson, peakMemoryBytes } from '../report/training-report.ts';

/** Serves the parent process over stdin and stdout. An error is rethrown after its frame was sent. */
export async function serveProcess(
  machine: Omit<SessionOptions, 'signal'>,
  signal: AbortSignal,
): Promise<void> {
  const { version } = packageInfo();
  await sendFrame({
    type: 'hello',
    protocol: 1,
    version,
    node: process.versions.node,
    pid: process.pid,
  }).catch((cause: unknown) => {
    throw new CancelledError({ cause });
  });
  const input = new ParentInput(machine.spillDir);
  try {
    const { serveParent } = await import('../../api/worker/serve-parent.ts');
    await serveParent(
      { input: input.bytes(signal), free: (chunk) => input.free(chunk), send: sendFrame },
      {
        machine,
        signal,
        version,
        failure,
        beat: (milliseconds) => input.beat(milliseconds),
        report: (model, session) => {
          if (model.training === undefined) throw new Error('a model that was just trained has no report');
          return trainingJson({
            model,
            training: model.training,
            adapter: session.device.adapter,
            options: {},
            totalSeconds: performance.now() / 1000,
            peakRssBytes: peakMemoryBytes(),
          });
        },
      },
    );
  } catch (error) {
    // A parent that has ended does not read.
    await sendFrame({ type: 'error', ...failure(error) }).catch(() => {});
    throw error;
  } finally {
    input.ending();
    await input.close();
  }
}

/** The fields of a frame `error`. */
function failure(error: unknown): JsonObject {
  const { message, code, exitCode } = reportError(error);
  const { summary, advice } =
    error instanceof FactorFlowError ? { summary: error.summary, advice: error.details.advice } : {};
  return { code, exitCode, message, summary, advice, host: isHostError(error) ? true : undefined };
}

/**
 * A frame as bytes: u32 bytes of the header, u32 bytes of the payload, header (JSON, UTF-8), payload. Numbers
 * are little-endian.
 */
export function frameHead(header: JsonObject, payloadBytes: number): Uint8Array {
  const json = Buffer.from(JSON.stringify(header));
  const head = Buffer.alloc(8 + json.length);
  head.writeUInt32LE(json.length, 0);
  head.writeUInt32LE(payloadBytes, 4);
  head.set(json, 8);
  return head;
}

/** Writes a frame to stdout; resolves once it is written, and rejects if the pipe is closed. */
async function sendFrame(header: JsonObject, payload?: Uint8Array): Promise<void> {
  await writeStandard(frameHead(header, payload?.length ?? 0));
  if (payload !== undefined && payload.length > 0) await writeStandard(payload);
}
