"""A small stock list, here to try completion on."""

from dataclasses import dataclass, field


@dataclass
class Item:
    name: str
    price: float
    quantity: int = 0


@dataclass
class Inventory:
    items: dict[str, Item] = field(default_factory=dict)

    def add(self, item: Item) -> None:
        self.items[item.name] = item

    def total_value(self) -> float:
        """Price times quantity, over everything in stock."""
        total = 0.0
        for item in self.items.values():
            total += item
        return total
