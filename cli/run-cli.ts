import { setTimeout as pause } from 'node:timers/promises';
import { endAtOnce } from '../api/end-process.ts';
import type { ProfileReport } from '../api/reports/profile.ts';
import { onOneLine, withoutControls } from '../engine/format.ts';
import type { EventSink, JsonObject, Profile, Trace } from '../index.ts';
import type { CommandResult, PreparedCommand } from './commands/command.ts';
import type { Options } from './options/option.ts';
import { parseArguments } from './parse-arguments.ts';
import { openProgress, type Progress } from './progress/open-progress.ts';
import { commandName } from './quick-answer.ts';
import { nameFlags } from './report/name-flags.ts';
import { ignoreBrokenPipes, jsonLine, print } from './report/print.ts';
import { reportError } from './report/report-error.ts';
import { type Interruption, watchSignals } from './signals.ts';

/** Time to print the error of a run that was asked to end. */
const PRINT_MILLISECONDS = 500;

/** Output streams of a run: the process's own, or a test's. */
export interface Terminal {
  /** Writes to stdout; resolves once the text is written. */
  print(text: string): Promise<void>;
  /** Writes to stderr. */
  say(line: string): void;
}

/** The state of a running command line that the handlers of signals and crashes need. */
export interface Run {
  readonly argv: readonly string[];
  readonly terminal: Terminal;
  progress?: Progress;
  /** True with --json, as far as known. */
  json: boolean;
  /** The flags of the command; empty until it is known. */
  options: Options;
}

/**
 * Removes control characters from texts of data, such as ids and values in errors, before they reach the
 * terminal.
 */
export function startRun(argv: readonly string[], { print, say }: Terminal): Run {
  const terminal: Terminal = {
    print: (text) => print(withoutControls(text)),
    say: (line) => say(withoutControls(line)),
  };
  return { argv, terminal, json: argv.includes('--json'), options: {} };
}

/** Runs the command line of this process and returns the exit code. */
export async function runCli(argv: readonly string[]): Promise<number> {
  const run = startRun(argv, { print, say: (line) => void process.stderr.write(`${line}\n`) });
  ignoreBrokenPipes();
  watchCrashes(run);
  const interruption = watchSignals(
    () => run.progress?.note('stopping in order; once more stops at once'),
    () => run.progress?.close('failed'),
  );
  try {
    const code = await finish(run, interruption);
    // An open input, such as a terminal, would keep the process running.
    return interruption.signal.aborted ? await endAtOnce(code) : code;
  } finally {
    interruption.close();
  }
}

/** Runs a command line to its exit code. The caller handles signals and crashes of the process. */
export async function finish(
  run: Run,
  interruption: Pick<Interruption, 'signal'> & Partial<Interruption>,
): Promise<number> {
  const { stuck } = interruption;
  try {
    return await Promise.race([execute(run, interruption), ...(stuck ? [stuck] : [])]);
  } catch (error) {
    run.progress?.close('failed');
    return await fail(error, run, interruption.signal);
  }
}

async function execute(
  run: Run,
  { signal, handleHangup }: Pick<Interruption, 'signal'> & Partial<Interruption>,
): Promise<number> {
  const { print, say } = run.terminal;
  const request = await parseArguments(run.argv);
  if (request.kind === 'text') {
    await print(request.text);
    return 0;
  }
  const { options } = request.command;
  run.options = options;
  const command = request.command.prepare(request.raw);
  run.json = command.json;
  const progress = await openProgress(command, say);
  run.progress = progress;
  const onEvent = warnOnce((event) =>
    progress.onEvent(
      event.type === 'warning' || event.type === 'note'
        ? { ...event, text: onOneLine(nameFlags(event.text, options)) }
        : event,
    ),
  );
  await (await import('./output/check-collisions.ts')).refuseCollisions(command.files);
  if (command.report !== undefined) await (await import('./page/report-file.ts')).checkReport(command.report);
  const { trace, profile } = await openMeasures(command);
  let result: CommandResult;
  try {
    result = await command.run({
      signal,
      onEvent,
      expect: progress.expect,
      profile,
      onHangup: handleHangup,
    });
  } finally {
    // A trace is written even if the command fails.
    if (trace && profile) await endTrace(trace, profile, { command: commandName(run.argv) ?? null }, onEvent);
  }
  // A cancelled command that returned a result did not finish its phases.
  progress.close(signal.aborted ? 'failed' : 'done');
  const told = profile ? await measured(command, result, profile, run) : result;
  const { json, exitCode = 0 } = told;
  const text = shownText(command, told);
  // A command that wrote its output to stdout prints nothing else there.
  if (run.json || text !== '') await print(run.json ? jsonLine(json) : text);
  return exitCode;
}

/** Opens the trace that a command writes, and the profile that the trace, the report or --profile needs. */
async function openMeasures(
  command: PreparedCommand,
): Promise<{ readonly trace?: Trace | undefined; readonly profile?: Profile }> {
  if (command.trace === undefined && !command.profile && command.report === undefined) return {};
  if (command.trace !== undefined && command.trace !== '-')
    await (await import('../api/output/check-output.ts')).checkWritable(command.trace);
  const trace =
    command.trace === undefined
      ? undefined
      : await (await import('../api/reports/trace.ts')).Trace.open(command.trace);
  const { Profile } = await import('../api/reports/profile.ts');
  return { trace, profile: new Profile({ from: 'process', trace }) };
}

/** Writes the requested report; returns the result, with its profile if requested. */
async function measured(
  command: PreparedCommand,
  result: CommandResult,
  profile: Profile,
  run: Run,
): Promise<CommandResult> {
  if (command.report !== undefined && result.report !== undefined) {
    const { writeReport } = await import('./page/page.ts');
    await writeReport(command.report, result.report, profile.report(), run.argv);
  }
  return command.profile ? await profiled(command, result, profile.report(), run) : result;
}

/** The text of a result; --quiet hides it if it is only a summary. */
function shownText(command: PreparedCommand, { text, isSummary = false }: CommandResult): string {
  return command.quiet && isSummary ? '' : text;
}

/** Passes each warning on only once: fitting, evaluation and each trial of a search may all emit it. */
export function warnOnce(events: EventSink): EventSink {
  const seen = new Set<string>();
  return (event) => {
    if (event.type === 'warning') {
      const { code, text } = event;
      const key = JSON.stringify([code, text]);
      if (seen.has(key)) return;
      seen.add(key);
    }
    events(event);
  };
}

/** Failing to write a trace does not fail the command. */
async function endTrace(
  trace: Trace,
  profile: Profile,
  about: JsonObject,
  onEvent: EventSink,
): Promise<void> {
  profile.report();
  await trace.close(about).catch((error: unknown) =>
    onEvent({
      type: 'warning',
      text: `the trace is not written: ${error instanceof Error ? error.message : String(error)}`,
    }),
  );
}

/**
 * A result followed by its profile; if the command wrote its output to stdout, the table is printed to
 * stderr.
 */
async function profiled(
  command: PreparedCommand,
  result: CommandResult,
  report: ProfileReport,
  { json: asJson, terminal }: Run,
): Promise<CommandResult> {
  const { json, text, exitCode } = result;
  const phases = report.phases.map((phase) => ({ ...phase }));
  if (asJson) return { json: { ...json, profile: { seconds: report.seconds, phases } }, text, exitCode };
  const { profileTable } = await import('./report/profile-table.ts');
  const table = profileTable(report);
  if (text === '') {
    terminal.say(table);
    return result;
  }
  const shown = shownText(command, result);
  return { json, text: shown === '' ? table : `${shown}\n${table}`, exitCode };
}

/**
 * Prints the message on stderr and, with --json, one object on stdout too: {"command", "error": {"message",
 * "code", "exitCode"}}.
 */
async function fail(
  error: unknown,
  { argv, terminal, json, options }: Run,
  signal?: AbortSignal,
): Promise<number> {
  const { text, message, code, exitCode } = reportError(error, options);
  terminal.say(text);
  if (!json) return exitCode;
  const printed = terminal
    .print(jsonLine({ command: commandName(argv) ?? null, error: { message, code, exitCode } }))
    .catch(() => {});
  // The reader of a pipe may never take the message.
  await (signal?.aborted ? Promise.race([printed, pause(PRINT_MILLISECONDS)]) : printed);
  return exitCode;
}

/** An error outside every promise of `finish` ends the process at once; incomplete output is removed. */
function watchCrashes(run: Run): void {
  const crash = (error: unknown) => {
    run.progress?.close('failed');
    void fail(error, run).then(endAtOnce);
  };
  process.on('uncaughtException', crash);
  process.on('unhandledRejection', crash);
}
