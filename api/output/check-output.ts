import { mkdir, rmdir, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { errorCode, fileProblem } from '../../connectors/files/file-problem.ts';
import { recoverOutput, Temporary } from '../../connectors/output/temporaries.ts';
import { CapacityError, DataError, UsageError } from '../../engine/errors.ts';
import { refuseLossyName } from '../../connectors/files/dataset-path.ts';

/**
 * Checks before any long work that `target` can be written: creates and removes an empty folder in the
 * nearest existing parent folder. Also removes temporary folders that killed processes have left. Throws
 * DataError with the place and advice, CapacityError for a full disk.
 */
export async function checkWritable(target: string): Promise<void> {
  refuseLossyName(target, 'write');
  const parent = await nearestFolder(dirname(resolve(target)), target);
  const place = join(parent, relative(parent, resolve(target)).split(sep)[0]);
  try {
    await recoverOutput(place);
    const temporary = Temporary.beside(place);
    await mkdir(temporary.path);
    await rmdir(temporary.path);
    temporary.forget();
  } catch (error) {
    const problem = fileProblem(error, 'write', parent);
    if (problem instanceof UsageError) throw problem;
    if (problem instanceof CapacityError)
      throw new CapacityError(problem.summary, { ...problem.details, file: target });
    // Special folders (/proc) exist, but creating a file in them fails with ENOENT. The system's message,
    // that they do not exist, would be misleading.
    const reason =
      problem instanceof DataError && errorCode(error) !== 'ENOENT'
        ? problem.summary
        : `${parent} takes no new folders`;
    throw new DataError(`cannot write the output: ${reason}`, {
      phase: 'write',
      file: target,
      advice: "Choose another output, or check the folder's permissions",
      cause: error,
    });
  }
}

async function nearestFolder(path: string, target: string): Promise<string> {
  for (let folder = path; ; folder = dirname(folder)) {
    try {
      if ((await stat(folder)).isDirectory()) return folder;
    } catch (error) {
      if (errorCode(error) === 'ENOENT') continue;
      if (errorCode(error) !== 'ENOTDIR') throw fileProblem(error, 'write', folder);
      continue;
    }
    throw new DataError(`cannot write the output: ${folder} is a file, not a folder`, {
      phase: 'write',
      file: target,
      advice: 'Choose another output',
    });
  }
}
