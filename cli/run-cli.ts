import { ignoreBrokenPipes, jsonLine, print } from './report/print.ts';
import { commandName, parseArguments } from './parse-arguments.ts';
import { openProgress } from './progress/open-progress.ts';
import type { Progress } from './progress/progress.ts';
import { reportError } from './report/report-error.ts';
import { endAtOnce, type Interruption, watchSignals } from './signals.ts';

/** What the handlers of signals and crashes must know of the run. */
interface Run {
  readonly argv: readonly string[];
  interruption?: Interruption;
  progress?: Progress;
  /** --json, as far as it is known. */
  json: boolean;
}

/** Runs a command line and gives the exit code. */
export async function runCli(argv: readonly string[]): Promise<number> {
  const run: Run = { argv, json: argv.includes('--json') };
  ignoreBrokenPipes();
  watchCrashes(run);
  run.interruption = watchSignals(
    () => run.progress?.note('stopping in order; once more stops at once'),
    () => run.progress?.close('failed'),
  );
  try {
    return await execute(run, run.interruption.signal);
  } catch (error) {
    run.progress?.close('failed');
    return await fail(error, run);
  } finally {
    run.interruption.close();
  }
}

async function execute(run: Run, signal: AbortSignal): Promise<number> {
  const request = await parseArguments(run.argv);
  if (request.kind === 'text') {
    await print(request.text);
    return 0;
  }
  const command = request.command.prepare(request.raw);
  run.json = command.json;
  const progress = await openProgress(command.quiet);
  run.progress = progress;
  const { json, text, exitCode = 0 } = await command.run({ signal, onEvent: progress.onEvent, expect: progress.expect });
  progress.close('done');
  // A command that wrote its output to stdout has nothing more to say there.
  if (run.json || text !== '') await print(run.json ? jsonLine(json) : text);
  return exitCode;
}

/** The message on stderr and, with --json, one object on stdout too: {"command", "error": {"message", "exitCode"}}. */
async function fail(error: unknown, { argv, json }: Run): Promise<number> {
  const { text, message, exitCode } = reportError(error);
  process.stderr.write(`${text}\n`);
  if (json) await print(jsonLine({ command: commandName(argv) ?? null, error: { message, exitCode } })).catch(() => {});
  return exitCode;
}

/** What no promise led back to `runCli`: the process ends at once, and nothing half-written stays. */
function watchCrashes(run: Run): void {
  const crash = (error: unknown) => {
    run.progress?.close('failed');
    void fail(error, run).then(endAtOnce);
  };
  process.on('uncaughtException', crash);
  process.on('unhandledRejection', crash);
}
