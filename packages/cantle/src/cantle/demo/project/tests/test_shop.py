import unittest

from shop.bill import bill, item_total
from shop.order import Item, read_order


class OrderTest(unittest.TestCase):
    def test_reads_an_item(self) -> None:
        self.assertEqual(read_order("3 x pencil @ 0.50"), [Item(3, "pencil", 50)])

    def test_reads_prices_above_one(self) -> None:
        self.assertEqual(read_order("1 x notebook @ 2.25"), [Item(1, "notebook", 225)])

    def test_skips_empty_lines(self) -> None:
        self.assertEqual(len(read_order("1 x pen @ 0.90\n\n2 x pen @ 0.80\n")), 2)

    def test_names_the_line_that_is_wrong(self) -> None:
        with self.assertRaisesRegex(ValueError, "line 2 is not an item"):
            read_order("1 x pen @ 0.90\nnonsense")


class BillTest(unittest.TestCase):
    def test_few_pieces_cost_their_price(self) -> None:
        self.assertEqual(item_total(Item(9, "pen", 100)), 900)

    def test_ten_pieces_are_a_tenth_cheaper(self) -> None:
        self.assertEqual(item_total(Item(10, "pen", 100)), 900)

    def test_adds_up(self) -> None:
        self.assertIn("total                3.75", bill([Item(3, "pencil", 50), Item(1, "notebook", 225)]))


if __name__ == "__main__":
    unittest.main()
