import { fileProblem, messageOf } from '../../connectors/files/file-problem.ts';
import { UsageError } from '../../engine/errors.ts';
import { readRegular } from '../../engine/regular-file.ts';

/**
 * The JSON object in a file that a flag names; `what` describes it in messages. Throws UsageError naming the
 * file if it cannot be read, is not a regular file, is larger than `most` bytes, or has no JSON object.
 */
export function readJsonObject(
  file: string,
  what: string,
  most: number,
  advice: string,
): Readonly<Record<string, unknown>> {
  let text: string;
  try {
    text = Buffer.from(readRegular(file, most, { phase: what })).toString();
  } catch (error) {
    const problem = fileProblem(error, what, file);
    throw problem instanceof UsageError ? problem : new UsageError(problem.message, { cause: error });
  }
  try {
    const content: unknown = JSON.parse(text.replace(/^\uFEFF/, ''));
    if (typeof content === 'object' && content !== null && !Array.isArray(content))
      return content as Readonly<Record<string, unknown>>;
  } catch (error) {
    throw new UsageError(`the ${what} is not JSON: ${messageOf(error).replaceAll(/\s+/g, ' ')}`, { file });
  }
  throw new UsageError(`the ${what} is not a JSON object`, { file, advice });
}
