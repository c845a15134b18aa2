package io.github.factorflow.spark.rows;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static io.github.factorflow.spark.rows.SolvedBlock.Loss.NONE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.serializer.KryoSerializer;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.serializer.SerializerInstance;
import org.junit.jupiter.api.Test;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

class SolvedBlockTest {

  @Test
  void bothSerializersOfSparkCopyResultsOfTasks() throws Exception {
    String facts =
      "{\"type\":\"answer\",\"rows\":2,\"ratings\":3,\"squares\":4.5,\"columns\":7,\"sends\":[1,2],\"bytes\":{\"kept\":3,\"loading\":4,\"solving\":5,\"process\":6," +
      "\"equations\":{\"kept\":8,\"forming\":9,\"summing\":10}}}";
    String loss = "{\"squared\":4.5,\"count\":2,\"observed\":0,\"penalty\":0.5}";
    SparkConf conf = new SparkConf();
    for (Serializer serializer : List.of(new KryoSerializer(conf), new JavaSerializer(conf))) {
      SolvedBlock loaded = copy(serializer, SolvedBlock.loaded(1, facts));
      assertEquals(1, loaded.block);
      assertEquals(4.5, loaded.facts().squares());
      assertEquals(7, loaded.facts().columns());
      assertEquals(2, loaded.facts().sends()[1]);
      assertEquals(10, loaded.facts().bytes().equations().summing());
      SolvedBlock solved = copy(
        serializer,
        SolvedBlock.solved(2, List.of(new byte[] { 1, 2 }), new byte[] { 3 }, loss)
      );
      assertArrayEquals(new byte[] { 1, 2 }, solved.factors.get(0));
      assertArrayEquals(new byte[] { 3 }, solved.gram);
      assertEquals(1.5, solved.loss().rmse());
      assertEquals(List.of(), copy(serializer, solved.summary()).factors);
    }
  }

  @Test
  void aLossThatWasNotMeasuredIsNaN() {
    assertTrue(Double.isNaN(SolvedBlock.solved(0, List.of(), null, "{\"missing\":\"fixed\"}").loss().with(NONE, 0)));
    assertEquals(NONE, SolvedBlock.solved(0, List.of(), null, "{}").loss());
    assertEquals(0, SolvedBlock.empty(3).facts().bytes().equations().kept());
  }

  private static SolvedBlock copy(Serializer serializer, SolvedBlock block) {
    SerializerInstance instance = serializer.newInstance();
    ClassTag<SolvedBlock> tag = ClassTag$.MODULE$.apply(SolvedBlock.class);
    return instance.deserialize(instance.serialize(block, tag), tag);
  }
}
