import { packageInfo } from '../api/package-info.ts';
import { standardOutput } from '../connectors/output/standard-output.ts';

/** Words that request a text instead of running a command: "help train". */
export const HELP = 'help';
const VERSION = 'version';

/**
 * The text for --help (-h) or --version, at any position, and for the words help and version; undefined for
 * any other line and for an unknown command. Loads only the text.
 */
export async function quickAnswer(argv: readonly string[]): Promise<string | undefined> {
  const end = argv.indexOf('--');
  const words = end < 0 ? argv : argv.slice(0, end);
  if (words[0] === HELP) return helpText(commandName(words.slice(1).filter((word) => word !== HELP)));
  if (words.includes('--help') || words.includes('-h'))
    return helpText(words[0] === VERSION ? undefined : commandName(argv));
  return words.includes('--version') || words[0] === VERSION ? packageInfo().version : undefined;
}

/** Prints such a text. Returns the exit code; loads further modules only if stdout fails. */
export async function printAnswer(text: string): Promise<number> {
  const output = standardOutput();
  const failed = await new Promise<Error | null | undefined>((resolve) => {
    output.on('error', resolve).write(`${text}\n`, resolve);
  });
  if (!failed) return 0;
  const { isBrokenPipe } = await import('./report/print.ts');
  if (isBrokenPipe(failed)) return 0;
  const { standardProblem } = await import('../connectors/output/standard-output.ts');
  const { reportError } = await import('./report/report-error.ts');
  const report = reportError(standardProblem(failed));
  process.stderr.write(`${report.text}\n`);
  return report.exitCode;
}

/** The text of --help for the terminal's width; undefined for an unknown command. */
async function helpText(command = ''): Promise<string | undefined> {
  const { helpTexts } = await import('./generated/help.ts');
  const texts = helpTexts[command];
  return (
    texts &&
    texts[
      Math.max(
        ...Object.keys(texts)
          .map(Number)
          .filter((width, at) => at === 0 || width <= (process.stdout.columns ?? 100)),
      )
    ]
  );
}

/** The first word of the line, unless it is a flag. */
export function commandName(argv: readonly string[]): string | undefined {
  return argv.length > 0 && !argv[0].startsWith('-') ? argv[0] : undefined;
}
