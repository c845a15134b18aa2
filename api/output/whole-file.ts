import { ByteOutput } from '../../connectors/output/byte-output.ts';
import { checkWritable } from './check-output.ts';

/** Checks before the work that a file can be written. Throws UsageError if it must not be replaced. */
export async function checkWholeFile(path: string, overwrite: boolean): Promise<void> {
  await ByteOutput.check(path, { overwrite });
  await checkWritable(path);
}

/** Writes a text completely or not at all. */
export async function writeWholeFile(path: string, text: string, overwrite: boolean): Promise<void> {
  const output = await ByteOutput.open(path, { overwrite });
  try {
    await output.write(Buffer.from(text));
    await output.commit();
  } catch (error) {
    throw await output.fail(error);
  }
}
